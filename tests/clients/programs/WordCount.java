import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Properties;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/** Counts words exactly once with Kafka Streams. What it is told and what it says: tests/clients/test_streams.py. */
class WordCount {
    public static void main(String[] arguments) throws IOException {
        var properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("application.id", arguments[1]);
        properties.put("state.dir", arguments[4]);
        properties.put("processing.guarantee", "exactly_once_v2");
        properties.put("commit.interval.ms", "1000");
        properties.put("statestore.cache.max.bytes", "0");  // each word that comes gives a record
        properties.put("repartition.purge.interval.ms", "1000");
        properties.put("main.consumer.session.timeout.ms", "3000");
        properties.put("main.consumer.heartbeat.interval.ms", "300");
        properties.put("producer.transaction.timeout.ms", "5000");
        properties.put("reconnect.backoff.max.ms", "200");

        var strings = Serdes.String();
        var builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(strings, strings))
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("counts", strings, strings))
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream()
            .mapValues(count -> count.toString())
            .to(arguments[3], Produced.with(strings, strings));
        var streams = new KafkaStreams(builder.build(), properties);
        streams.setStateListener((now, before) -> say("state " + now));
        streams.setUncaughtExceptionHandler(failure -> {
            say("failed " + failure + ": " + failure.getCause());
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        System.in.readAllBytes();
        say(streams.close(Duration.ofSeconds(60)) ? "closed" : "not closed");
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
