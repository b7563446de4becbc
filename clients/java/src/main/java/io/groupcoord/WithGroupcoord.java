package io.groupcoord;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Each test of the class, or this test, gets a broker of its own as a parameter of type {@link Groupcoord}.
 *
 * <p>It is made before the test and ended after it. A test fails if a rule of it never acted, or if something went wrong in the
 * broker; the report of a failed test says what happened on its broker.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(GroupcoordExtension.class)
public @interface WithGroupcoord {
    /** Topics with their numbers of partitions: {@code "orders:6"}. */
    String[] topics() default {};

    /** Who moves the time: {@code manual} (the test), {@code real}, or {@code fast}. */
    String clock() default "manual";

    /** How many brokers the cluster has. */
    int brokers() default 1;

    /** Properties of a Kafka broker: {@code "group.min.session.timeout.ms=100"}. */
    String[] config() default {};
}
