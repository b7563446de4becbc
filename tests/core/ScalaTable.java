// Prints in which order Scala's immutable Set and mutable HashMap iterate, and Java's HashMap filled by computeIfAbsent and
// HashSet made of a list:
// `java -cp 'kafka/libs/*' ScalaTable.java > scala_table.json`, with the jars of Kafka 4.3.1 (Scala 2.13).
// test_scala_hash_order.py compares with it.

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;

public class ScalaTable {
    @SuppressWarnings("unchecked")
    public static void main(String[] args) {
        Random random = new Random(20240829);
        List<String> stories = new ArrayList<>();
        for (int size : new int[] {0, 1, 2, 4, 5, 6, 11, 12, 13, 14, 15, 16, 18, 20, 23, 24, 25, 26, 30, 34, 60, 200}) {
            List<String> keys = new ArrayList<>();
            for (int i = 0; i < size; i++) keys.add((i % 2 == 0 ? "t" : "topic-") + random.nextInt(3 * size));
            if (size > 20) keys.addAll(List.of("Aa", "BB", "AaAa", "BBBB", "AaBB"));  // equal hashes
            scala.collection.immutable.Set<String> set = scala.collection.immutable.Set$.MODULE$.empty();
            scala.collection.immutable.Set<String> shrunk = scala.collection.immutable.Set$.MODULE$.empty();
            scala.collection.mutable.HashMap<String, String> map = new scala.collection.mutable.HashMap<>();
            HashMap<String, String> java = new HashMap<>();
            for (String key : keys) {
                set = (scala.collection.immutable.Set<String>) set.incl(key);
                map.put(key, "");
                java.computeIfAbsent(key, absent -> "");
            }
            shrunk = set;
            for (int i = 0; i < keys.size() - 3; i++) shrunk = (scala.collection.immutable.Set<String>) shrunk.excl(keys.get(i));
            List<String> setOrder = new ArrayList<>();
            List<String> shrunkOrder = new ArrayList<>();
            List<String> mapOrder = new ArrayList<>();
            set.foreach(key -> setOrder.add(key));
            shrunk.foreach(key -> shrunkOrder.add(key));
            map.keysIterator().foreach(key -> mapOrder.add(key));
            stories.add("{\"keys\": " + json(keys) + ",\n \"set\": " + json(setOrder) + ",\n \"shrunk_set\": " + json(shrunkOrder)
                + ",\n \"mutable_map\": " + json(mapOrder) + ",\n \"computed_map\": " + json(new ArrayList<>(java.keySet()))
                + ",\n \"java_set\": " + json(new ArrayList<>(new HashSet<>(keys))) + "}");
        }
        System.out.println(stories.stream().collect(Collectors.joining(",\n", "[\n", "\n]")));
    }

    private static String json(List<String> keys) {
        return keys.stream().map(key -> "\"" + key + "\"").collect(Collectors.joining(", ", "[", "]"));
    }
}
