#!/usr/bin/env bash
# kafka-run-class.sh CLASS ARGUMENT...: run a class of Kafka's. Under another name, kafka-topics.sh and so on, that tool's.
set -euo pipefail
tools=org.apache.kafka.tools
case "$(basename "$0" .sh)" in
  kafka-topics)          set -- $tools.TopicCommand "$@" ;;
  kafka-configs)         set -- kafka.admin.ConfigCommand "$@" ;;
  kafka-consumer-groups) set -- $tools.consumer.group.ConsumerGroupCommand "$@" ;;
  kafka-dump-log)        set -- $tools.DumpLogSegments "$@" ;;
esac
# Java takes the archive only where it fits.
[ ! -s /opt/kafka/classes.jsa ] || archive=-XX:SharedArchiveFile=/opt/kafka/classes.jsa
# shellcheck disable=SC2086 # each is a list of options
exec java ${archive-} ${KAFKA_HEAP_OPTS:--Xmx256m} ${KAFKA_JVM_PERFORMANCE_OPTS-} ${KAFKA_LOG4J_OPTS-} ${KAFKA_OPTS-} \
  -cp '/opt/kafka/libs/*' "$@"
