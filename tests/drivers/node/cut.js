// The Node.js driver while a move is cut over: HOST:PORT KEYSPACE. It does what ../python/cut.py does.
'use strict';

const readline = require('node:readline');
const cassandra = require('cassandra-driver');

const { policies, types } = cassandra;
const WORKERS = 4;
const BEFORE = 100;
const AFTER = 500;
const [address, keyspace] = process.argv.slice(2);

async function main() {
  // The driver expects the same port at all hosts.
  const port = Number(address.slice(address.lastIndexOf(':') + 1));
  const connect = async () => {
    const client = new cassandra.Client({
      protocolOptions: { port },
      contactPoints: [address],
      localDataCenter: 'datacenter1',
      keyspace,
      policies: { retry: new policies.retry.FallthroughRetryPolicy() },
      queryOptions: { consistency: types.consistencies.quorum, prepare: true, isIdempotent: false },
      socketOptions: { readTimeout: 30000, connectTimeout: 30000 },
    });
    await client.connect();
    return client;
  };
  const client = await connect();
  const failures = [];
  const hosts = new Map();
  const counts = new Array(WORKERS).fill(0);
  let ends = false;
  let begun = 0;

  async function run(statement, values, by = client) {
    const result = await by.execute(statement, values);
    const host = result.info.queriedHost;
    hosts.set(host, (hosts.get(host) || 0) + 1);
    return result.rows;
  }

  async function work(number, started) {
    for (let after = AFTER, step = 0; after > 0; ) {
      const key = step * WORKERS + number;
      try {
        await run('INSERT INTO node_rows (k, v) VALUES (?, ?)', [key, 0]);
        await run('UPDATE node_rows SET v = ? WHERE k = ?', [key + 1, key]);
        await run('UPDATE node_lists SET l = l + ? WHERE k = ?', [[step], number]);
        const rows = await run('SELECT v FROM node_rows WHERE k = ?', [key]);
        if (rows[0].v !== key + 1) failures.push(`row ${key} had ${rows[0].v}`);
      } catch (error) {
        failures.push(`${key}: ${error}`);
      }
      step += 1;
      counts[number] = step;
      if (step === BEFORE && ++begun === WORKERS) started();
      if (ends) after -= 1;
    }
  }

  const all = [];
  await new Promise((started) => {
    for (let number = 0; number < WORKERS; number++) all.push(work(number, started));
  });
  console.log('running');
  const input = readline.createInterface({ input: process.stdin });
  input.once('line', () => {
    ends = true;
    input.close();
  });
  await Promise.all(all);
  const found = new Map();
  for await (const row of client.stream('SELECT k, v FROM node_rows', [], { autoPage: true, fetchSize: 100 })) {
    found.set(row.k, row.v);
  }
  let written = 0;
  for (let number = 0; number < WORKERS; number++) {
    for (let step = 0; step < counts[number]; step++) {
      const key = step * WORKERS + number;
      if (found.get(key) !== key + 1) failures.push(`row ${key} has ${found.get(key)}`);
    }
    written += counts[number];
    const { rows } = await client.execute('SELECT l FROM node_lists WHERE k = ?', [number]);
    const appended = [...rows[0].l].sort((one, other) => one - other);
    if (appended.length !== counts[number] || appended.some((step, at) => step !== at)) {
      failures.push(`list ${number}: ${appended.length} elements for ${counts[number]} steps`);
    }
  }
  if (found.size !== written) failures.push(`${found.size} rows of ${written}`);
  // This driver makes its map of tokens when it connects first, and never again: it finds the nodes, but sends requests to the host that
  // it has known from the beginning. A client that comes later goes to the nodes.
  const later = await connect();
  for (let key = 0; key < 50; key++) {
    const rows = await run('SELECT v FROM node_rows WHERE k = ?', [key], later);
    if (rows[0].v !== key + 1) failures.push(`row ${key} has ${rows[0].v} for a later client`);
  }
  await later.shutdown();
  for (const failure of failures.slice(0, 20)) console.log('FAILED', failure);
  const where = [...hosts].sort().map(([host, count]) => `${host} ${count}`);
  console.log(failures.length ? 'FAILED' : 'ok', written, 'steps;', where.join(', '));
  await client.shutdown();
  process.exit(failures.length ? 1 : 0);
}

main().catch((error) => {
  console.log('FAILED', error);
  process.exit(1);
});
