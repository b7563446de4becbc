// Prints Kafka's own table of errors: `java -cp "kafka/libs/*" ErrorsTable.java > errors_table.json`.
// test_errors.py compares groupcoord.protocol.errors with it.

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

public class ErrorsTable {
    public static void main(String[] args) {
        List<String> rows = new ArrayList<>();
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            String text = error.message().replace("\\", "\\\\").replace("\"", "\\\"");
            rows.add(String.format("[%d, \"%s\", %b, \"%s\"]", error.code(), error.name(), retriable, text));
        }
        System.out.println("[\n" + String.join(",\n", rows) + "\n]");
    }
}
