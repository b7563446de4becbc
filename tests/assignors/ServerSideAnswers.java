// Asks the assignors of Kafka's group coordinator, one case a line of JSON on stdin in the format of server-side-vectors.json,
// and prints one line with the answer for each: member to topic id to partitions, in the order of Kafka's maps.
//
//   java -cp 'docker/kafka/libs/*' tests/assignors/ServerSideAnswers.java < cases > answers
//
// What a member has so far is read from a record, topics and partitions as listed, as the coordinator reads it.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.AbstractSet;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class ServerSideAnswers {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("expected", answer(question, answer));
            } catch (RuntimeException failure) {
                answer.put("expected_error", failure.getClass().getSimpleName());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static ObjectNode answer(JsonNode question, ObjectNode notes) {
        PartitionAssignor assignor = switch (question.get("assignor").asText()) {
            case "server-uniform" -> new UniformAssignor();
            case "server-range" -> new RangeAssignor();
            default -> new SimpleAssignor();
        };
        Map<String, Uuid> ids = new HashMap<>();
        Map<Uuid, String> names = new HashMap<>();
        question.get("topic_ids").fields().forEachRemaining(topic -> {
            ids.put(topic.getKey(), Uuid.fromString(topic.getValue().asText()));
            names.put(ids.get(topic.getKey()), topic.getKey());
        });
        Map<Uuid, Integer> counts = new HashMap<>();
        question.get("partitions_per_topic").fields()
            .forEachRemaining(topic -> counts.put(ids.get(topic.getKey()), topic.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            Assignment assigned = assigned(member, ids);
            assigned.partitions().forEach((topicId, partitions) -> partitions.forEach(partition ->
                owners.computeIfAbsent(topicId, id -> new HashMap<>()).put(partition, member.get("id").asText())));
            Optional<String> instanceId = Optional.ofNullable(member.path("instance_id").asText(null));
            members.put(member.get("id").asText(),
                new MemberSubscriptionAndAssignmentImpl(Optional.empty(), instanceId, wanted(member, ids), assigned));
        }
        Optional<Map<Uuid, Set<Integer>>> assignable = Optional.empty();
        if (question.has("assignable")) {
            Map<Uuid, Set<Integer>> allowed = new HashMap<>();
            question.get("assignable").fields().forEachRemaining(topic -> topic.getValue().forEach(partition ->
                allowed.computeIfAbsent(ids.get(topic.getKey()), id -> new HashSet<>()).add(partition.asInt())));
            assignable = Optional.of(allowed);
        }
        SubscriptionType type = SubscriptionType.valueOf(question.get("subscription_type").asText());
        long begin = System.nanoTime();
        GroupAssignment given = assignor.assign(new GroupSpecImpl(members, type, owners, assignable), describer(counts));
        notes.put("seconds", (System.nanoTime() - begin) / 1e9);
        ObjectNode answer = JSON.createObjectNode();
        for (String member : members.keySet()) {
            ObjectNode topics = answer.putObject(member);
            if (given.members().containsKey(member))
                given.members().get(member).partitions().forEach((topicId, partitions) -> {
                    ArrayNode listed = topics.putArray(names.get(topicId));
                    partitions.forEach(listed::add);
                });
        }
        return answer;
    }

    private static Assignment assigned(JsonNode member, Map<String, Uuid> ids) {
        List<ConsumerGroupTargetAssignmentMemberValue.TopicPartition> topics = new ArrayList<>();
        member.path("assigned").fields().forEachRemaining(topic -> {
            List<Integer> partitions = new ArrayList<>();
            topic.getValue().forEach(partition -> partitions.add(partition.asInt()));
            topics.add(new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                .setTopicId(ids.get(topic.getKey())).setPartitions(partitions));
        });
        return Assignment.fromRecord(new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(topics));
    }

    /** Like TopicIds: topics as listed, and as large as all names, even those of topics that do not exist. */
    private static Set<Uuid> wanted(JsonNode member, Map<String, Uuid> ids) {
        Set<Uuid> listed = new LinkedHashSet<>();
        member.get("topics").forEach(topic -> listed.add(ids.get(topic.asText())));
        int size = listed.size() + member.path("unknown_topics").asInt();
        return new AbstractSet<>() {
            @Override
            public Iterator<Uuid> iterator() {
                return listed.iterator();
            }

            @Override
            public boolean contains(Object topicId) {
                return listed.contains(topicId);
            }

            @Override
            public int size() {
                return size;
            }
        };
    }

    private static SubscribedTopicDescriber describer(Map<Uuid, Integer> counts) {
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return counts.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
    }
}
