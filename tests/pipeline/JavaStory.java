// Lives of groups of Kafka's own Java consumers, for recordings/java-clients: what their assignors really did, to compare replays with.
// With kafka-clients 4.3.1, and a fresh server that has the topics orders (6 partitions), payments (3) and refunds (4),
// offsets.topic.num.partitions=1 and group.initial.rebalance.delay.ms=0:
//
//   groupcoord serve --port PORT --data-dir DIR --topic orders:6 --topic payments:3 --topic refunds:4 -c …
//   java -cp 'libs/*' JavaStory.java HOST:PORT
//
// Then DIR/__consumer_offsets-0/*.log is the recording. One thread polls all members of a group in turn.
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class JavaStory {
    private static final Map<String, Integer> TOPICS = Map.of("orders", 6, "payments", 3, "refunds", 4);
    private static final String PREFIX = "org.apache.kafka.clients.consumer.";

    private final String bootstrap;
    private final String group;
    private final String assignor;
    private final boolean isStatic;
    private final Map<String, KafkaConsumer<byte[], byte[]>> members = new HashMap<>();

    private JavaStory(String bootstrap, String group, String assignor, boolean isStatic) {
        this.bootstrap = bootstrap;
        this.group = group;
        this.assignor = assignor;
        this.isStatic = isStatic;
    }

    public static void main(String[] arguments) {
        Map<String, String> assignors = Map.of(
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor",
            "cooperative-sticky", "CooperativeStickyAssignor");
        for (Map.Entry<String, String> one : assignors.entrySet()) {
            String assignor = PREFIX + one.getValue();
            new JavaStory(arguments[0], one.getKey(), assignor, false).same();
            new JavaStory(arguments[0], one.getKey() + "-unequal", assignor, false).unequal();
            new JavaStory(arguments[0], one.getKey() + "-static", assignor, true).restarts();
        }
    }

    /** All want the same: two, three, four members, then the first goes, then two at once, then one comes. */
    private void same() {
        List<String> topics = List.of("orders", "payments");
        join("a", topics);
        join("b", topics);
        settle();
        join("c", topics);
        settle();
        join("d", topics);
        settle();
        leave("a");
        settle();
        leave("b");
        leave("c");
        settle();
        join("e", topics);
        settle();
        end();
    }

    /** Members want different topics, and one changes its mind. */
    private void unequal() {
        join("a", List.of("orders", "payments"));
        join("b", List.of("payments", "refunds"));
        settle();
        join("c", List.of("orders", "refunds"));
        settle();
        members.get("a").subscribe(List.of("orders", "payments", "refunds"));
        settle();
        leave("b");
        settle();
        end();
    }

    /** A static member restarts, which is no rebalance, and then another comes. */
    private void restarts() {
        List<String> topics = List.of("orders", "refunds");
        join("a", topics);
        join("b", topics);
        settle();
        members.remove("a").close(Duration.ofSeconds(5));
        join("a", topics);
        settle();
        join("c", topics);
        settle();
        end();
    }

    private void join(String name, List<String> topics) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("client.id", group + "-" + name);
        settings.put("partition.assignment.strategy", assignor);
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", "earliest");
        settings.put("heartbeat.interval.ms", 200);
        if (isStatic) {
            settings.put("group.instance.id", "instance-" + name);
        }
        KafkaConsumer<byte[], byte[]> member =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        member.subscribe(topics);
        members.put(name, member);
    }

    private void leave(String name) {
        members.remove(name).close(Duration.ofSeconds(5));
    }

    private void end() {
        for (String name : List.copyOf(members.keySet())) {
            leave(name);
        }
        System.out.println(group);
    }

    /** Until everything is somebody's, and stays so for a while. */
    private void settle() {
        int calm = 0;
        Set<TopicPartition> before = Set.of();
        for (int round = 0; round < 3000 && calm < 25; round++) {
            List<TopicPartition> given = new ArrayList<>();
            Set<String> wanted = new HashSet<>();
            boolean isEverybodyIn = true;
            for (KafkaConsumer<byte[], byte[]> member : members.values()) {
                member.poll(Duration.ofMillis(20));
                given.addAll(member.assignment());
                wanted.addAll(member.subscription());
                isEverybodyIn &= !member.assignment().isEmpty();
            }
            int total = wanted.stream().mapToInt(TOPICS::get).sum();
            Set<TopicPartition> now = new HashSet<>(given);
            boolean isCalm = isEverybodyIn && given.size() == total && now.size() == total && now.equals(before);
            calm = isCalm ? calm + 1 : 0;
            before = now;
        }
        if (calm < 25) {
            throw new IllegalStateException(group + " does not come to rest");
        }
    }
}
