"""Every configuration of a Kafka 4.3.1 topic, in Kafka's own order, with the broker properties that give its default.

The columns: name, type, what values it may have (the words of ``rules``), default, and the broker properties in order
of precedence; one behind ``h:`` counts hours, behind ``m:`` minutes, where the topic's counts milliseconds.
``internal.segment.bytes`` is for tests: a segment smaller than ``segment.bytes`` allows, shown only when it is set.
Source: ``LogConfig.configDefCopy`` and ``ServerTopicConfigSynonyms``.
"""

ROWS = """\
segment.bytes                           int     1048576..   1073741824          log.segment.bytes
segment.ms                              long    1..         604800000           log.roll.ms h:log.roll.hours
segment.jitter.ms                       long    0..         0                   log.roll.jitter.ms h:log.roll.jitter.hours
segment.index.bytes                     int     4..         10485760            log.index.size.max.bytes
flush.messages                          long    1..         9223372036854775807 log.flush.interval.messages
flush.ms                                long    0..         9223372036854775807 log.flush.interval.ms log.flush.scheduler.interval.ms
retention.bytes                         long    -           -1                  log.retention.bytes
retention.ms                            long    -1..        604800000           log.retention.ms m:log.retention.minutes h:log.retention.hours
max.message.bytes                       int     0..         1048588             message.max.bytes
index.interval.bytes                    int     0..         4096                log.index.interval.bytes
delete.retention.ms                     long    0..         86400000            log.cleaner.delete.retention.ms
min.compaction.lag.ms                   long    0..         0                   log.cleaner.min.compaction.lag.ms
max.compaction.lag.ms                   long    1..         9223372036854775807 log.cleaner.max.compaction.lag.ms
file.delete.delay.ms                    long    0..         60000               log.segment.delete.delay.ms
min.cleanable.dirty.ratio               double  0..1        0.5                 log.cleaner.min.cleanable.ratio
cleanup.policy                          list    list:compact|delete delete      log.cleanup.policy
unclean.leader.election.enable          boolean -           false               unclean.leader.election.enable
min.insync.replicas                     int     1..         1                   min.insync.replicas
compression.type                        string  uncompressed|zstd|lz4|snappy|gzip|producer producer compression.type
compression.gzip.level                  int     1..9or-1    -1                  compression.gzip.level
compression.lz4.level                   int     1..17       9                   compression.lz4.level
compression.zstd.level                  int     -131072..22 3                   compression.zstd.level
preallocate                             boolean -           false               log.preallocate
message.timestamp.type                  string  CreateTime|LogAppendTime CreateTime log.message.timestamp.type
message.timestamp.before.max.ms         long    0..         9223372036854775807 log.message.timestamp.before.max.ms
message.timestamp.after.max.ms          long    0..         3600000             log.message.timestamp.after.max.ms
leader.replication.throttled.replicas   list    replicas    ""
follower.replication.throttled.replicas list    replicas    ""
remote.storage.enable                   boolean -           false
local.retention.ms                      long    -2..        -2                  log.local.retention.ms
local.retention.bytes                   long    -2..        -2                  log.local.retention.bytes
remote.log.copy.disable                 boolean -           false
remote.log.delete.on.disable            boolean -           false
internal.segment.bytes                  int     -           null
"""  # noqa: E501
