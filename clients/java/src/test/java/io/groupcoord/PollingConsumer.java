package io.groupcoord;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Kafka's own consumer, polled in a thread of its own. */
final class PollingConsumer implements AutoCloseable {
    final List<String> values = new CopyOnWriteArrayList<>();
    private final KafkaConsumer<String, String> consumer;
    private final Thread thread;

    PollingConsumer(Groupcoord kafka, String group, String clientId, String topic) {
        consumer = new KafkaConsumer<>(
                Map.of(
                        "bootstrap.servers", kafka.address(),
                        "group.id", group,
                        "client.id", clientId,
                        "heartbeat.interval.ms", "50",
                        "auto.offset.reset", "earliest"),
                new StringDeserializer(),
                new StringDeserializer());
        consumer.subscribe(List.of(topic));
        thread = new Thread(this::poll, clientId);
        thread.start();
    }

    private void poll() {
        try {
            while (true) {
                consumer.poll(Duration.ofMillis(50)).forEach(each -> values.add(each.value()));
            }
        } catch (WakeupException closed) {
            // a heartbeat that was dropped has no response; without a timeout the consumer waits 30 seconds for it
            consumer.close(CloseOptions.timeout(Duration.ofSeconds(1)));
        }
    }

    @Override
    public void close() throws InterruptedException {
        consumer.wakeup();
        thread.join();
    }
}
