package io.groupcoord;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A rule for requests, being said: conditions first, then what happens to the requests that meet them. */
public final class Faults {
    private final ControlApi api;
    private final Map<String, Object> rule = new LinkedHashMap<>();

    Faults(ControlApi api, String request) {
        this.api = api;
        rule.put("when", request);
    }

    /** Only requests of that group. */
    public Faults group(String name) {
        rule.put("group", name);
        return this;
    }

    /** Only requests of that member: by its member id, or its instance id. */
    public Faults member(String id) {
        rule.put("member", id);
        return this;
    }

    /** Only requests of that client id. */
    public Faults clientId(String id) {
        rule.put("client_id", id);
        return this;
    }

    /** Only requests for that topic. */
    public Faults topic(String name) {
        rule.put("topic", name);
        return this;
    }

    /** The rule acts so many times, and not once. */
    public Faults times(int count) {
        rule.put("times", count);
        return this;
    }

    /** The rule acts whenever it matches. */
    public Faults always() {
        rule.put("times", "always");
        return this;
    }

    /** The rule need not act. */
    public Faults optional() {
        rule.put("optional", true);
        return this;
    }

    /** Answer with that error; the request is not handled. */
    public Rule refuse(String code) {
        rule.put("code", code);
        return act("refuse");
    }

    /** Handle the request so much later, on the broker's clock. */
    public Rule delay(Duration duration) {
        rule.put("ms", duration.toMillis());
        return act("delay");
    }

    /** Neither handle nor answer the request, as if it was lost. */
    public Rule drop() {
        return act("drop");
    }

    /** Handle the request and never answer it. */
    public Rule dropAnswer() {
        return act("drop_answer");
    }

    /** Close the connection; the request is not handled. */
    public Rule disconnect() {
        return act("disconnect");
    }

    /** Let the request wait until {@link Rule#release}. */
    public Rule hold() {
        return act("hold");
    }

    /** Any other action of the grammar of faults, with its arguments. */
    public Rule act(String action, Map<String, ?> arguments) {
        rule.putAll(arguments);
        return act(action);
    }

    private Rule act(String action) {
        rule.put("do", action);
        return new Rule(api, api.post(RuleState.class, "/faults", rule).id());
    }

    /** The state of a rule. */
    public record RuleState(int id, String text, int uses, List<Held> waiting) {}

    /** A request that a rule holds. */
    public record Held(String api, int version, String clientId, String text) {}

    /** A rule that was added to the broker. */
    public static final class Rule {
        private static final Duration TIMEOUT = Duration.ofSeconds(30);
        private final ControlApi api;
        private final String path;

        private Rule(ControlApi api, int id) {
            this.api = api;
            this.path = "/faults/" + id;
        }

        /** How often the rule has acted. */
        public int uses() {
            return api.get(RuleState.class, path).uses();
        }

        /** Wait until the rule has acted so often. */
        public void waitActed(int count) {
            api.await(RuleState.class, path + "/wait?acted=" + count, TIMEOUT);
        }

        /** Wait until the rule has held so many requests; returns those that it holds now. */
        public List<Held> waitHeld(int count) {
            return api.await(RuleState.class, path + "/wait?held=" + count, TIMEOUT).waiting();
        }

        /** Let all requests go on that the rule holds, in the order in which they came. */
        public void release() {
            api.post(path + "/release", Map.of());
        }

        /** Remove the rule. */
        public void remove() {
            api.delete(path);
        }
    }
}
