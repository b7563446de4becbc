// Prints in which order Kafka's TimelineHashMap iterates:
// `java -cp 'kafka/libs/*' KafkaTable.java > kafka_table.json`, with the jars of Kafka 4.3.1.
// test_timeline.py compares groupcoord.core.timeline with it.

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;

import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

public class KafkaTable {
    public static void main(String[] args) {
        Random random = new Random(20240829);
        List<String> stories = new ArrayList<>();
        for (int story = 0; story < 60; story++) {
            TimelineHashMap<Object, Integer> map = new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
            boolean numbers = story % 2 == 0;
            int range = List.of(2, 3, 6, 12, 50).get(story % 5);
            List<String> steps = new ArrayList<>();
            for (int step = 0; step < 4 + story; step++) {
                int number = random.nextInt(range);
                Object key = numbers ? (Object) number : "topic-" + number;
                if (random.nextInt(4) == 0) {
                    map.remove(key);
                    steps.add("[\"remove\", " + json(key) + "]");
                } else {
                    map.put(key, step);
                    steps.add("[\"put\", " + json(key) + "]");
                }
            }
            List<String> order = new ArrayList<>();
            map.entrySet().forEach(entry -> order.add(json(entry.getKey())));
            stories.add("{\"steps\": " + steps + ",\n \"order\": " + order + "}");
        }
        System.out.println(stories.stream().collect(Collectors.joining(",\n", "[\n", "\n]")));
    }

    private static String json(Object key) {
        return key instanceof String ? "\"" + key + "\"" : key.toString();
    }
}
