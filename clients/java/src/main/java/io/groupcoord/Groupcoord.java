package io.groupcoord;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A Kafka broker whose time, faults and groups are in the test's hands: what {@code groupcoord serve --control} offers.
 *
 * <p>Every method raises {@link GroupcoordException} for what the server refuses, and {@link java.io.UncheckedIOException} where
 * there is no server.
 */
public final class Groupcoord {
    private final ControlApi server;
    private final ControlApi api;
    private final String address;

    private Groupcoord(ControlApi server, ControlApi api) {
        this.server = server;
        this.api = api;
        this.address = api.get(Status.class, "/status").address();
    }

    /** The broker behind {@code url}, such as {@code http://127.0.0.1:9093}; {@code token} may be null. */
    public static Groupcoord connect(String url, String token) {
        ControlApi server = new ControlApi(url, token);
        return new Groupcoord(server, server);
    }

    /** {@code host:port}: the bootstrap server for clients. */
    public String address() {
        return address;
    }

    /** Where this broker is controlled, for what no method here offers. */
    public String url() {
        return api.url();
    }

    /** What the broker is now. */
    public Status status() {
        return api.get(Status.class, "/status");
    }

    /** Make another broker in the same process, with a port of its own and nothing in common with this one. */
    public Groupcoord newBroker(BrokerSettings settings) {
        Status made = server.post(Status.class, "/brokers", settings.body());
        return new Groupcoord(server, server.below("/brokers/" + ControlApi.part(made.name())));
    }

    /** End this broker, one that {@link #newBroker} made; returns its unexpected errors, and rules that never acted. */
    public List<String> end() {
        return api.deleteWithProblems();
    }

    /** Replace the broker by a fresh one at the same address, in milliseconds; returns the same as {@link #end}. */
    public List<String> reset() {
        return api.post(Problems.class, "/reset", Map.of()).problems();
    }

    /** Stop the broker: close its ports and all connections, and keep its logs. */
    public void stop() {
        api.post("/stop", Map.of());
    }

    /** Start the broker again on the same ports; groups are loaded from the log. */
    public void restart() {
        api.post("/restart", Map.of());
    }

    /** Create a topic. */
    public void createTopic(String name, int partitions) {
        createTopic(name, partitions, Map.of());
    }

    /** Create a topic with configurations of its own. */
    public void createTopic(String name, int partitions, Map<String, String> configs) {
        api.post("/topics", Map.of("name", name, "partitions", partitions, "configs", configs));
    }

    /** Delete a topic, and the offsets committed for it. */
    public void deleteTopic(String name) {
        api.delete("/topics/" + ControlApi.part(name));
    }

    /** Write records with these values; without keys, they go to partition 0. */
    public void produce(String topic, String... values) {
        List<Map<String, Object>> records = new ArrayList<>();
        for (String value : values) {
            records.add(Map.of("value", value, "partition", 0));
        }
        api.post("/topics/" + ControlApi.part(topic) + "/records", Map.of("records", records));
    }

    /** Write a record; the key chooses the partition, as Kafka's own clients choose it. */
    public void produceKeyed(String topic, String key, String value) {
        List<?> records = List.of(Map.of("key", key, "value", value));
        api.post("/topics/" + ControlApi.part(topic) + "/records", Map.of("records", records));
    }

    /** The records of a topic that a read_committed consumer can read now. */
    public List<StoredRecord> records(String topic) {
        return api.list(StoredRecord.class, "/topics/" + ControlApi.part(topic) + "/records");
    }

    /** The broker with that id of this cluster: to stop, kill, pause and start it. */
    public Node node(int id) {
        return new Node(api, id);
    }

    /** The controller of this cluster of several brokers: to kill, pause and start it. */
    public Controller controller() {
        return new Controller(api);
    }

    /** The group of that name, whether it exists or not. */
    public Group group(String name) {
        return new Group(api, name);
    }

    /** The names of all groups that exist. */
    public List<String> groups() {
        return api.list(GroupDescription.class, "/groups").stream().map(GroupDescription::group).toList();
    }

    /** The clock of the broker, if it is manual. */
    public Clock clock() {
        return new Clock(api);
    }

    /** A rule for requests of that API, such as {@code when("Heartbeat")}; {@code "any"} is every API. */
    public Faults when(String request) {
        return new Faults(api, request);
    }

    /** The trace of everything that happened, one line for each entry, with its cause. */
    public String trace() {
        return api.text("/trace/text");
    }

    /** Why that generation of a group began. */
    public String whyGeneration(String group, int generation) {
        return api.text("/trace/why" + ControlApi.query(Map.of("group", group, "generation", generation)));
    }

    /** How a member of a group last joined, left or changed: by its member id, instance id or client id. */
    public String whyMember(String group, String member) {
        return api.text("/trace/why" + ControlApi.query(Map.of("group", group, "member", member)));
    }

    /** What a failed test shows: groups, what they wait for, rules that acted, and the end of the trace. */
    public String report() {
        return api.text("/report");
    }

    /** What a broker is: {@code state} is {@code up} or {@code stopped}. */
    public record Status(String name, String version, String state, String address, List<String> topics) {}

    /** A record of a topic; {@code value_base64} where it is not text. */
    public record StoredRecord(
            String topic, int partition, long offset, long timestampMs, String key, String value, String keyBase64, String valueBase64) {
        /** The bytes of the value; null if there is none. */
        public byte[] bytes() {
            if (valueBase64 != null) {
                return Base64.getDecoder().decode(valueBase64);
            }
            return value == null ? null : value.getBytes(StandardCharsets.UTF_8);
        }
    }

    record Problems(List<String> problems) {}

    /** A partition of a topic, with an offset or a lag. */
    public record PartitionOffset(String topic, int partition, Long offset, Long lag) {}

    /** What a group is now; {@code generation} is of a classic group, {@code epoch} of one of KIP-848. */
    public record GroupDescription(String group, String type, String state, Integer generation, Integer epoch, List<Member> members) {}

    /** A member of a group. */
    public record Member(String memberId, String instanceId, String clientId, List<PartitionOffset> assigned) {}

    /** A pending timer, such as a session timeout. */
    public record Deadline(long atMs, double inSeconds, String kind, String group, String member, String reason) {}

    /** How a broker is made. */
    public static final class BrokerSettings {
        private final Map<String, Object> body = new HashMap<>();
        private final Map<String, Object> topics = new HashMap<>();
        private final Map<String, Object> config = new HashMap<>();

        /** A topic to begin with. */
        public BrokerSettings topic(String name, int partitions) {
            topics.put(name, partitions);
            return this;
        }

        /** Who moves the time: {@code real}, {@code manual} (the test), or {@code fast}. */
        public BrokerSettings clock(String mode) {
            body.put("clock", mode);
            return this;
        }

        /** How many brokers the cluster has. */
        public BrokerSettings brokers(int number) {
            body.put("brokers", number);
            return this;
        }

        /** A property of a Kafka broker. */
        public BrokerSettings config(String name, String value) {
            config.put(name, value);
            return this;
        }

        Map<String, Object> body() {
            body.put("topics", topics);
            body.put("config", config);
            return body;
        }
    }

    /** A group. Waits take a timeout, after which they raise GroupcoordException with the reasons. */
    public static final class Group {
        private static final Duration TIMEOUT = Duration.ofSeconds(30);
        private final ControlApi api;
        private final String path;

        private Group(ControlApi api, String name) {
            this.api = api;
            this.path = "/groups/" + ControlApi.part(name);
        }

        /** The group as it is now; its state is Dead if it does not exist. */
        public GroupDescription describe() {
            return api.get(GroupDescription.class, path);
        }

        /** All committed offsets. */
        public List<PartitionOffset> offsets() {
            return api.list(PartitionOffset.class, path + "/offsets");
        }

        /** The number of records after the committed offset of each partition; null where no offset is committed. */
        public List<PartitionOffset> lag() {
            return api.list(PartitionOffset.class, path + "/lag");
        }

        /** Commit an offset as an administrator does, for a group without members. */
        public void commit(String topic, int partition, long offset) {
            Object offsets = List.of(Map.of("topic", topic, "partition", partition, "offset", offset));
            api.put(path + "/offsets", Map.of("offsets", offsets));
        }

        /** Wait until the group is Stable with so many members. */
        public GroupDescription waitStable(int members) {
            return await("stable=" + members);
        }

        /** Wait until the group exists and has no members. */
        public GroupDescription waitEmpty() {
            return await("empty=true");
        }

        /** Wait for the beginning of that generation, or a later one. */
        public GroupDescription waitGeneration(int number) {
            return await("generation=" + number);
        }

        /** Wait until that offset, or a later one, is committed. */
        public GroupDescription waitCommitted(String topic, int partition, long offset) {
            return await("committed=" + ControlApi.part(topic + ":" + partition + ":" + offset));
        }

        /** Let the session of a member time out now: by its member id, instance id or client id. */
        public void expireMember(String member) {
            api.post(path + "/expire-member", Map.of("member", member));
        }

        /** Fence a static member: another one takes over its instance id. */
        public void fenceMember(String instanceId) {
            api.post(path + "/fence-member", Map.of("instance_id", instanceId));
        }

        /** Force a rebalance: the members have to join again. */
        public void forceRebalance(String reason) {
            api.post(path + "/force-rebalance", Map.of("reason", reason));
        }

        /** Move the coordinator of this group to another broker. */
        public void moveCoordinator(int brokerId) {
            api.post(path + "/move-coordinator", Map.of("to", brokerId));
        }

        private GroupDescription await(String what) {
            return api.await(GroupDescription.class, path + "/wait?" + what, TIMEOUT);
        }
    }

    /** The state of a broker of a cluster: {@code state} is {@code running}, {@code paused}, {@code stopped} or {@code starting}. */
    public record NodeState(
            int id,
            String address,
            String rack,
            String state,
            boolean fenced,
            boolean registered,
            List<String> cutOffFrom,
            boolean replicating,
            int slowDiskMs,
            boolean lostDisk,
            String condition) {}

    /** The state of a controller: {@code running}, {@code paused} or {@code stopped}, and the epoch of its election. */
    public record ControllerState(int id, String state, int epoch) {}

    /** The controller of a cluster: while it is down, requests that need it wait, and all others are served. */
    public static final class Controller {
        private final ControlApi api;

        private Controller(ControlApi api) {
            this.api = api;
        }

        /** The controller's state, and the epoch in which it was elected. */
        public ControllerState describe() {
            return api.get(ControllerState.class, "/controller");
        }

        /** Kill the controller. */
        public ControllerState kill() {
            return act("kill");
        }

        /** Start it again after {@link #kill}, in the next epoch. */
        public ControllerState start() {
            return act("start");
        }

        /** Suspend the controller until {@link #resume}. */
        public ControllerState pause() {
            return act("pause");
        }

        /** End a {@link #pause}. */
        public ControllerState resume() {
            return act("resume");
        }

        private ControllerState act(String verb) {
            return api.post(ControllerState.class, "/controller/" + verb, Map.of());
        }
    }

    /** One broker of a cluster. An action that its state does not allow raises GroupcoordException. */
    public static final class Node {
        private static final Duration TIMEOUT = Duration.ofSeconds(30);
        private final ControlApi api;
        private final String path;

        private Node(ControlApi api, int id) {
            this.api = api;
            this.path = "/nodes/" + id;
        }

        /** The broker's state. */
        public NodeState describe() {
            return api.get(NodeState.class, path);
        }

        /** Shut the broker down cleanly: others become leaders of its partitions. */
        public NodeState stop() {
            return act("stop");
        }

        /** Kill the broker: it is fenced when its session expires. */
        public NodeState kill() {
            return act("kill");
        }

        /** Suspend the broker until {@link #resume}; its connections stay open. */
        public NodeState pause() {
            return act("pause");
        }

        /** End a {@link #pause}. */
        public NodeState resume() {
            return act("resume");
        }

        /** Start the broker again; after {@link #kill} it has to wait until its old session has expired. */
        public NodeState start() {
            return act("start");
        }

        /** Pause the broker's replication from leaders until {@link #resumeReplication}. */
        public NodeState pauseReplication() {
            return act("pause-replication");
        }

        /** Resume the broker's replication from leaders. */
        public NodeState resumeReplication() {
            return act("resume-replication");
        }

        /** Cut the network between the broker and a peer: the id of another broker, {@code clients} or {@code controller}. */
        public NodeState cutOff(String peer) {
            return act("cut-off?peer=" + URLEncoder.encode(peer, StandardCharsets.UTF_8));
        }

        /** End a {@link #cutOff}. */
        public NodeState reconnect(String peer) {
            return act("reconnect?peer=" + URLEncoder.encode(peer, StandardCharsets.UTF_8));
        }

        /** Delay each append of the broker by so long on the clock of the cluster; zero ends that. */
        public NodeState slowDisk(Duration each) {
            return act("slow-disk?seconds=" + each.toMillis() / 1000.0);
        }

        /** Delete the data of the broker, while it is stopped or killed. */
        public NodeState loseDisk() {
            return act("lose-disk");
        }

        /** Unregister the broker at the controller. */
        public NodeState unregister() {
            return act("unregister");
        }

        /** Wait until the controller has fenced it. */
        public NodeState waitFenced() {
            return api.await(NodeState.class, path + "/wait?fenced=true", TIMEOUT);
        }

        /** Wait until the broker runs. */
        public NodeState waitRunning() {
            return api.await(NodeState.class, path + "/wait?running=true", TIMEOUT);
        }

        private NodeState act(String verb) {
            return api.post(NodeState.class, path + "/" + verb, Map.of());
        }
    }

    /** The clock of a broker, if it is {@code manual}. */
    public static final class Clock {
        private final ControlApi api;

        private Clock(ControlApi api) {
            this.api = api;
        }

        /** Advance the clock: every timer that expires runs at its own time, in order, before this returns. */
        public void advance(Duration duration) {
            api.post("/clock/advance", Map.of("seconds", duration.toMillis() / 1000.0));
        }

        /** The pending timers, earliest first. */
        public List<Deadline> deadlines() {
            return api.list(Deadline.class, "/clock/deadlines");
        }
    }
}
