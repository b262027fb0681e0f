// The ScyllaDB module of Testcontainers for Node.js, as it is: start, a row written and read, restart.

import assert from "node:assert";
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[3]}/`);
const { ScyllaContainer } = require("@testcontainers/scylladb");
const { Client } = require("cassandra-driver");

const container = await new ScyllaContainer(`scylladb/scylla:${process.argv[2]}`).start();
try {
  const client = await connected();
  await client.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'}");
  await client.execute("CREATE TABLE k.users (id uuid PRIMARY KEY, name text)");
  const id = "d002cd08-401a-47d6-92d7-bb4204d092f8";
  await client.execute("INSERT INTO k.users (id, name) VALUES (?, ?) USING TIMEOUT 5s", [id, "Test"]);
  const { rows } = await client.execute("SELECT * FROM k.users WHERE id = ? BYPASS CACHE", [id], { prepare: true });
  assert.equal(rows[0].name, "Test");
  await client.shutdown();
  await container.restart();
  await (await connected()).shutdown();
} finally {
  await container.stop();
}

async function connected() {
  const client = new Client({ contactPoints: [container.getContactPoint()], localDataCenter: container.getDatacenter() });
  await client.connect();
  return client;
}
