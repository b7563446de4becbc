// Prints what real Java says of string hashes and of the iteration order of HashMap: `java JavaTable.java > java_table.json`.
// test_java_hash_order.py compares groupcoord.core.java_hash_order with it. Keys are written as arrays of UTF-16 units, so that no encoding gets
// in the way.

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;

public class JavaTable {
    public static void main(String[] args) {
        List<String> texts = new ArrayList<>(List.of(
            "", "a", "g", "test", "group", "my-group", "__consumer_offsets", "polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES",
            "Aa", "BB", "AaAa", "BBBB", "é", "Grüße", "グループ", "\u0000", "\uffff", "\ud83d\ude00", "a\ud83d\ude00b", "\ud83d", "\ude00x",
            "x".repeat(1000)));
        Random random = new Random(20240829);
        for (int i = 0; i < 40; i++) {
            StringBuilder text = new StringBuilder();
            for (int j = random.nextInt(12); j >= 0; j--) text.append((char) random.nextInt(0x10000));
            texts.add(text.toString());
        }
        String hashes = texts.stream()
            .map(text -> "[" + text.chars().boxed().collect(Collectors.toList()) + "," + text.hashCode() + ","
                + (text.hashCode() == Integer.MIN_VALUE ? 0 : Math.abs(text.hashCode())) % 50 + "]")
            .collect(Collectors.joining(",\n"));

        // One map that grows to 400 keys, loses every third, gets some of them back; its order after each stage.
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < 400; i++) {
            String uuid = new java.util.UUID(random.nextLong(), random.nextLong()).toString();
            keys.add((i % 3 == 0 ? "consumer-" : i % 3 == 1 ? "c" : "") + i + "-" + uuid.substring(0, 8));
        }
        HashMap<String, Integer> map = new HashMap<>();
        StringBuilder stages = new StringBuilder();
        for (int i = 0; i < keys.size(); i++) {
            map.put(keys.get(i), i);
            if (List.of(1, 8, 12, 13, 24, 25, 48, 49, 100, 200, 400).contains(i + 1)) stages.append(stage("put", i + 1, map));
        }
        for (int i = 0; i < keys.size(); i += 3) map.remove(keys.get(i));
        stages.append(stage("removed every third", 0, map));
        for (int i = 396; i >= 0; i -= 6) map.put(keys.get(i), i);
        stages.append(stage("put every sixth again, from the end", 0, map));
        for (int i = 0; i < keys.size(); i++) if (i % 20 != 1) map.remove(keys.get(i));
        stages.append(stage("kept every twentieth", 0, map));

        List<String> protocols = List.of("range", "roundrobin", "sticky", "cooperative-sticky");
        HashMap<String, Integer> votes = new HashMap<>();
        protocols.forEach(name -> votes.put(name, 1));
        System.out.println("{\"hashes\": [\n" + hashes + "],\n\"keys\": ["
            + keys.stream().map(key -> "\"" + key + "\"").collect(Collectors.joining(",\n")) + "],\n\"stages\": ["
            + stages.substring(0, stages.length() - 2) + "],\n\"protocols\": ["
            + votes.keySet().stream().map(name -> "\"" + name + "\"").collect(Collectors.joining(", ")) + "]}");
    }

    private static String stage(String what, int size, HashMap<String, Integer> map) {
        return "{\"what\": \"" + what + "\", \"puts\": " + size + ", \"order\": " + map.values() + "},\n";
    }
}
