// Transactions by kafkajs. What it is told and what it says: tests/clients/program_transactions.py.
const readline = require("node:readline");
const { Kafka, logLevel } = require("kafkajs");

const kafka = new Kafka({
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 60 },
});
const members = {};
const producers = {};
const transactions = {};
let readers = 0;

/**
 * A consumer that calls `found` with each record of a topic, from its beginning unless its group has committed, and `stopped`
 * if it stops for good, as when it looks for the coordinator on a server that is just going down.
 */
async function reading(groupId, topic, readUncommitted, found, stopped) {
  const consumer = kafka.consumer({
    groupId,
    readUncommitted,
    sessionTimeout: 6000,
    heartbeatInterval: 100,
    maxWaitTimeInMs: 100,
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || stopped());
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({ autoCommit: false, eachMessage: async ({ partition, message }) => found(partition, message) });
  return consumer;
}

/** What was read and is not transformed yet, and who waits for more of it. */
class Member {
  constructor(group, topic) {
    this.group = group;
    this.topic = topic;
    this.records = [];
    this.more = () => {};
  }

  /** Read on from what the group has committed: whoever comes back has what was not transformed once more. */
  async join() {
    this.records = [];
    const found = (partition, { offset, value }) => {
      this.records.push({ partition, offset, value: value.toString() });
      this.more();
    };
    await reading(this.group, this.topic, false, found, () => this.join());
  }

  async take(count) {
    while (this.records.length < count) {
      await new Promise((resolve) => {
        this.more = resolve;
      });
    }
    return this.records.splice(0, count);
  }

  /** Have what an aborted transaction took once more, without asking the server. */
  giveBack(records) {
    this.records.unshift(...records);
  }
}

async function send(transaction, topic, values) {
  await transaction.send({ topic, messages: values.map((value) => ({ value, partition: 0 })) });
}

async function transform(name, target, count, how) {
  const { group, topic } = members[name];
  const transaction = await producers[name].transaction();
  const records = await members[name].take(count);
  await send(
    transaction,
    target,
    records.map(({ value }) => value.toUpperCase()),
  );
  const next = new Map(records.map(({ partition, offset }) => [partition, `${BigInt(offset) + 1n}`]));
  const partitions = [...next].map(([partition, offset]) => ({ partition, offset }));
  await transaction.sendOffsets({ consumerGroupId: group, topics: [{ topic, partitions }] });
  if (how === "commit") {
    await transaction.commit();
  } else if (how === "abort") {
    await transaction.abort();
    members[name].giveBack(records);
  }
}

async function read(isolation, topic, last) {
  const found = [];
  let consumer;
  await new Promise((resolve, reject) => {
    const group = `readers-${process.pid}-${readers++}`;
    const next = (_, { value }) => {
      found.push(value.toString());
      if (found.at(-1) === last) resolve();
    };
    consumer = reading(group, topic, isolation === "read_uncommitted", next, () => reject(new Error("stopped")));
  });
  await (await consumer).disconnect();
  return found;
}

async function answer(name, verb, words) {
  switch (verb) {
    case "open": {
      const [transactionalId, timeout, group, topic] = words;
      producers[name] = kafka.producer({
        transactionalId,
        transactionTimeout: Number(timeout),
        idempotent: true,
        maxInFlightRequests: 1,
      });
      await producers[name].connect();
      if (group !== undefined) {
        members[name] = new Member(group, topic);
        await members[name].join();
      }
      return [];
    }
    case "begin":
      transactions[name] = await producers[name].transaction();
      return [];
    case "send":
      await send(transactions[name], words[0], [words[1]]);
      return [];
    case "commit":
    case "abort":
      await transactions[name][verb]();
      return [];
    case "transform":
      await transform(name, words[0], Number(words[1]), words[2]);
      return [];
    case "read":
      return read(...words);
    default:
      throw new Error(`unknown-${verb}`);
  }
}

/** The protocol's name of an error, if it has one, be it told after many tries. */
function why(failure) {
  return failure.type ?? (failure.cause ? why(failure.cause) : failure.name);
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, verb, ...words] = line.split(" ");
    try {
      console.log([name, "ok", ...(await answer(name, verb, words))].join(" "));
    } catch (failure) {
      console.log(`${name} failed ${why(failure)}`);
    }
  }
  process.exit(0);
}

main();
