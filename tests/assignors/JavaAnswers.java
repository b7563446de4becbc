// Asks the assignors of a Kafka client, one case a line of JSON on stdin in the format of assignor-vectors.json, and prints
// one line with the answer for each. java_answers.json was made with kafka-clients 4.3.1:
//
//   javac -cp 'libs/*' -d out JavaAnswers.java
//   java -cp 'out:libs/*' org.apache.kafka.clients.consumer.internals.JavaAnswers < cases > answers
//
// It stands in Kafka's package because two things in it are for Kafka's own tests only.
package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

public class JavaAnswers {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            answer.put("id", question.get("id").asText());
            try {
                answer.set("expected", answer(question));
            } catch (RuntimeException failure) {
                answer.put("expected_error", failure.getClass().getSimpleName());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static ObjectNode answer(JsonNode question) throws Exception {
        AbstractPartitionAssignor assignor = switch (question.get("assignor").asText()) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
        assignor.preferRackAwareLogic = question.path("prefer_rack_aware").asBoolean();
        if (question.has("max_generation")) {
            Field field = AbstractStickyAssignor.class.getDeclaredField("maxGeneration");
            field.setAccessible(true);
            field.setInt(assignor, question.get("max_generation").asInt());
        }
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : question.get("members"))
            subscriptions.put(member.get("id").asText(), subscription(member));
        ObjectNode answer = JSON.createObjectNode();
        Map<String, Assignment> assignments =
            assignor.assign(cluster(question), new GroupSubscription(subscriptions)).groupAssignment();
        assignments.forEach((member, assignment) -> {
            ArrayNode partitions = answer.putArray(member);
            assignment.partitions().forEach(given -> partitions.addArray().add(given.topic()).add(given.partition()));
        });
        return answer;
    }

    private static Cluster cluster(JsonNode question) {
        List<PartitionInfo> partitions = new ArrayList<>();
        Iterator<Map.Entry<String, JsonNode>> topics = question.get("partitions_per_topic").fields();
        int id = 0;
        while (topics.hasNext()) {
            Map.Entry<String, JsonNode> topic = topics.next();
            for (int number = 0; number < topic.getValue().asInt(); number++) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : question.path("partition_racks").path(topic.getKey()).path(number))
                    replicas.add(new Node(id++, "localhost", 9092, rack.isNull() ? null : rack.asText()));
                Node[] nodes = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), number, null, nodes, nodes));
            }
        }
        return new Cluster("cluster", new ArrayList<>(), partitions, new HashSet<>(), new HashSet<>());
    }

    private static Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        JsonNode wire = member.path("wire");
        List<TopicPartition> owned = new ArrayList<>();
        wire.path("owned_partitions").forEach(claim -> owned.add(new TopicPartition(claim.get(0).asText(), claim.get(1).asInt())));
        ByteBuffer userData =
            wire.has("user_data_hex") ? ByteBuffer.wrap(HexFormat.of().parseHex(wire.get("user_data_hex").asText())) : null;
        Optional<String> rack = member.has("rack") ? Optional.of(member.get("rack").asText()) : Optional.empty();
        Subscription subscription = new Subscription(topics, userData, owned, wire.path("generation_id").asInt(-1), rack);
        if (member.has("instance_id"))
            subscription.setGroupInstanceId(Optional.of(member.get("instance_id").asText()));
        return subscription;
    }
}
