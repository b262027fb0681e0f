// The Cassandra module of Testcontainers for Node.js, as it is: health check, data center and rack, restart.

import assert from "node:assert";
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[3]}/`);
const { CassandraContainer } = require("@testcontainers/cassandra");
const { Client } = require("cassandra-driver");

const container = await new CassandraContainer(`cassandra:${process.argv[2]}`).withDatacenter("here").withRack("r7").start();
try {
  await ask();
  await container.restart();
  await ask();
} finally {
  await container.stop();
}

async function ask() {
  const client = new Client({ contactPoints: [container.getContactPoint()], localDataCenter: container.getDatacenter() });
  await client.connect();
  const { rows } = await client.execute("SELECT release_version, data_center, rack FROM system.local");
  const { release_version, data_center, rack } = rows[0];
  assert.deepEqual({ release_version, data_center, rack }, { release_version: process.argv[2], data_center: "here", rack: "r7" });
  await client.shutdown();
}
