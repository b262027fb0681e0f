// The Node.js driver against a CQL server: see ../README.md for arguments and cases.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const cassandra = require('cassandra-driver');

const { types } = cassandra;
const KEYSPACE = 'node_driver';
const [address, ...wanted] = process.argv.slice(2);

function client(options) {
  return new cassandra.Client({ contactPoints: [address], localDataCenter: 'datacenter1', ...access(), ...options });
}

// TLS and a login, where the environment asks for them: see ../README.md.
function access() {
  const { DRIVER_CAFILE: ca, DRIVER_CERT: cert, DRIVER_KEY: key, DRIVER_USER: user, DRIVER_PASSWORD: password } = process.env;
  const options = {};
  if (ca) {
    options.sslOptions = { ca: [fs.readFileSync(ca)], rejectUnauthorized: true };
    if (cert) Object.assign(options.sslOptions, { cert: fs.readFileSync(cert), key: fs.readFileSync(key) });
  }
  if (user) options.authProvider = new cassandra.auth.PlainTextAuthProvider(user, password);
  return options;
}

async function table(session, name, columns) {
  await session.execute(`DROP TABLE IF EXISTS ${KEYSPACE}.${name}`);
  await session.execute(`CREATE TABLE ${KEYSPACE}.${name} (${columns})`);
  return `${KEYSPACE}.${name}`;
}

async function refused(code, text, session, statement) {
  await assert.rejects(session.execute(statement), (error) => {
    assert.equal(error.code, code, error.message);
    assert.ok(error.message.includes(text), `the message '${error.message}' lacks '${text}'`);
    return true;
  });
}

const cases = {
  async connect(session) {
    assert.equal(session.controlConnection.protocolVersion, 4);
    const hosts = session.hosts.values();
    assert.equal(hosts.length, 1);
    assert.equal(hosts[0].datacenter, 'datacenter1');
    assert.equal(hosts[0].rack, 'rack1');
    assert.ok(hosts[0].tokens.length > 0);
    assert.ok(session.metadata.keyspaces.system_schema);
  },

  async schema(session) {
    const create = `CREATE TABLE ${KEYSPACE}.made (a int, b text, c timeuuid, s text static, v blob, PRIMARY KEY ((a, b), c))
      WITH CLUSTERING ORDER BY (c DESC) AND comment = 'made here'`;
    await session.execute(`DROP TABLE IF EXISTS ${KEYSPACE}.made`);
    await session.execute(create);
    let made = await session.metadata.getTable(KEYSPACE, 'made');
    assert.deepEqual(made.partitionKeys.map((column) => column.name), ['a', 'b']);
    assert.deepEqual(made.clusteringKeys.map((column) => column.name), ['c']);
    assert.deepEqual(made.clusteringOrder, ['DESC']);
    assert.equal(made.comment, 'made here');
    assert.equal(made.isCompact, false);
    assert.equal(made.columnsByName.v.type.code, types.dataTypes.blob);
    await refused(types.responseErrorCodes.alreadyExists, 'made', session, create);
    await session.execute(create.replace('TABLE', 'TABLE IF NOT EXISTS'));
    await session.execute(`ALTER TABLE ${KEYSPACE}.made ADD w int`);
    made = await session.metadata.getTable(KEYSPACE, 'made');
    assert.ok(made.columnsByName.w);
    await session.execute(`DROP TABLE ${KEYSPACE}.made`);
    assert.equal(await session.metadata.getTable(KEYSPACE, 'made'), null);
  },

  async types(session) {
    const moment = new Date(Date.UTC(2026, 10, 21, 9, 30, 15, 123));
    const values = {
      ascii: ['', 'abc'],
      bigint: [types.Long.MAX_VALUE, types.Long.MIN_VALUE],
      blob: [Buffer.alloc(0), Buffer.from([0, 255])],
      boolean: [true, false],
      date: [new types.LocalDate(2026, 11, 21), new types.LocalDate(1969, 12, 31)],
      decimal: [types.BigDecimal.fromString('-1234567890.0123456789'), types.BigDecimal.fromString('0')],
      double: [-1.5e300, 5e-324],
      duration: [new types.Duration(1, 2, types.Long.fromNumber(3)), new types.Duration(-1, -2, types.Long.fromNumber(-3))],
      float: [1.5, -Infinity],
      inet: [types.InetAddress.fromString('127.0.0.1'), types.InetAddress.fromString('2001:db8::1')],
      int: [2147483647, -2147483648],
      smallint: [32767, -32768],
      text: ['', 'γαῖα'],
      time: [types.LocalTime.fromString('23:59:59.999999999'), types.LocalTime.fromString('00:00:00')],
      timestamp: [moment, new Date(0)],
      timeuuid: [types.TimeUuid.fromDate(moment), types.TimeUuid.now()],
      tinyint: [127, -128],
      uuid: [types.Uuid.random(), types.Uuid.fromString('00000000-0000-0000-0000-000000000000')],
      varint: [types.Integer.fromString('1606938044258990275541962092341162602522202993782792835301376'), types.Integer.fromInt(-129)],
    };
    const names = Object.keys(values);
    const full = await table(session, 'types', `k int PRIMARY KEY, ${names.map((name) => `${name}_ ${name}`)}`);
    const columns = names.map((name) => `${name}_`).join(', ');
    const insert = `INSERT INTO ${full} (k, ${columns}) VALUES (?, ${names.map(() => '?')})`;
    for (const k of [0, 1]) {
      await session.execute(insert, [k, ...names.map((name) => values[name][k])], { prepare: true });
      const row = (await session.execute(`SELECT * FROM ${full} WHERE k = ?`, [k], { prepare: true })).first();
      for (const name of names) {
        assert.deepEqual(String(row[`${name}_`]), String(values[name][k]), name);
      }
    }
    await session.execute(insert, [2, ...names.map(() => null)], { prepare: true });
    const row = (await session.execute(`SELECT ${columns} FROM ${full} WHERE k = 2`)).first();
    assert.ok(row.values().every((value) => value === null));
  },

  async simple(session) {
    const full = await table(session, 'simple', 'k int, c text, v double, PRIMARY KEY (k, c)');
    // Without a prepared statement the driver guesses types: a number is a double.
    await session.execute(`INSERT INTO ${full} (k, c, v) VALUES (1, ?, ?)`, ['x', 1.5]);
    await session.execute(`INSERT INTO ${full} (k, c, v) VALUES (1, :name, :value)`, { name: 'y', value: 2.5 });
    const found = await session.execute(`SELECT c, v FROM ${full} WHERE k = 1`);
    assert.deepEqual(found.rows.map((row) => [row.c, row.v]), [['x', 1.5], ['y', 2.5]]);
    assert.deepEqual(found.columns.map((column) => column.name), ['c', 'v']);
  },

  async prepared(session) {
    const full = await table(session, 'prepared', 'k int, c int, a int, b text, PRIMARY KEY (k, c)');
    const insert = `INSERT INTO ${full} (k, c, a, b) VALUES (?, ?, ?, ?)`;
    await session.execute(insert, [1, 1, 10, 'ten'], { prepare: true });
    await session.execute(insert, [1, 1, types.unset, null], { prepare: true });
    const row = (await session.execute(`SELECT a, b FROM ${full} WHERE k = 1`)).first();
    assert.deepEqual([row.a, row.b], [10, null]);
    await Promise.all([...Array(500).keys()].map((c) => session.execute(insert, [2, c, c, 'many'], { prepare: true })));
    const count = (await session.execute(`SELECT count(*) FROM ${full} WHERE k = 2`)).first();
    assert.equal(count.count.toNumber(), 500);
    const stamped = `INSERT INTO ${full} (k, c, a) VALUES (3, 3, 3)`;
    await session.execute(stamped, [], { prepare: true, timestamp: types.Long.fromNumber(1234567) });
    const time = (await session.execute(`SELECT writetime(a) AS at FROM ${full} WHERE k = 3`)).first().at;
    assert.equal(time.toNumber(), 1234567);
  },

  async batch(session) {
    const full = await table(session, 'batches', 'k int, c int, v text, PRIMARY KEY (k, c)');
    const query = `INSERT INTO ${full} (k, c, v) VALUES (?, ?, ?)`;
    for (const [k, logged] of [[1, true], [2, false]]) {
      const batch = [...Array(20).keys()].map((c) => ({ query, params: [k, c, 'v'] }));
      await session.batch(batch, { prepare: true, logged });
      const count = (await session.execute(`SELECT count(*) FROM ${full} WHERE k = ${k}`)).first().count;
      assert.equal(count.toNumber(), 20);
    }
    await session.batch([`INSERT INTO ${full} (k, c, v) VALUES (3, 1, 'text')`, `DELETE FROM ${full} WHERE k = 1`]);
    assert.equal((await session.execute(`SELECT * FROM ${full} WHERE k IN (1, 3)`)).rowLength, 1);
  },

  async paging(session) {
    const full = await table(session, 'paging', 'k int, c int, PRIMARY KEY (k, c)');
    const insert = `INSERT INTO ${full} (k, c) VALUES (?, ?)`;
    await Promise.all([...Array(1000).keys()].map((c) => session.execute(insert, [c % 3, c], { prepare: true })));
    const first = await session.execute(`SELECT c FROM ${full}`, [], { prepare: true, fetchSize: 100 });
    assert.equal(first.rowLength, 100);
    const next = await session.execute(`SELECT c FROM ${full}`, [], { prepare: true, fetchSize: 100, pageState: first.pageState });
    assert.ok(next.rows.every((row) => !first.rows.some((other) => other.c === row.c)));
    const all = new Set();
    for await (const row of await session.execute(`SELECT c FROM ${full}`, [], { prepare: true, fetchSize: 100 })) {
      all.add(row.c);
    }
    assert.equal(all.size, 1000);
  },

  async slices(session) {
    for (const order of ['ASC', 'DESC']) {
      const full = await table(session, 'slices', `k text, c text, v int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c ${order}`);
      const insert = `INSERT INTO ${full} (k, c, v) VALUES ('row', ?, ?)`;
      const name = (i) => String(i).padStart(4, '0');
      await Promise.all([...Array(300).keys()].map((i) => session.execute(insert, [name(i), i], { prepare: true })));
      const rows = async (where, params) => {
        const found = await session.execute(`SELECT v FROM ${full} WHERE k = 'row' ${where}`, params, { prepare: true });
        return found.rows.map((row) => row.v);
      };
      assert.deepEqual(await rows('AND c = ?', ['0042']), [42]);
      assert.deepEqual(await rows('AND c IN ? ORDER BY c ASC', [['0200', '0007', 'none']]), [7, 200]);
      assert.deepEqual(await rows('AND c >= ? AND c < ? ORDER BY c ASC', ['0100', '0103']), [100, 101, 102]);
      assert.deepEqual(await rows('AND c < ? ORDER BY c DESC LIMIT 3', ['0100']), [99, 98, 97]);
    }
  },

  async errors(session) {
    const codes = types.responseErrorCodes;
    await refused(codes.syntaxError, "line 1:0 no viable alternative at input 'SELEC'", session, 'SELEC * FROM x');
    await refused(codes.invalid, 'table absent does not exist', session, `SELECT * FROM ${KEYSPACE}.absent`);
    await refused(codes.configError, 'Unable to find replication strategy class', session,
      "CREATE KEYSPACE bad WITH replication = {'class': 'NoStrategy'}");
  },

  async tracing(session) {
    const found = await session.execute('SELECT key FROM system.local', [], { traceQuery: true });
    const trace = await session.metadata.getTrace(found.info.traceId);
    assert.equal(trace.requestType, 'Execute CQL3 query');
    assert.ok(trace.duration !== null && trace.events.length > 0);
  },

  async events(session) {
    const other = client();
    await other.connect();
    const appeared = new Promise((resolve) => {
      const old = session.controlConnection.handleSchemaChange.bind(session.controlConnection);
      session.controlConnection.handleSchemaChange = (event, fromEvent) => {
        if (event.keyspace === `${KEYSPACE}_event`) resolve();
        return old(event, fromEvent);
      };
    });
    await other.execute(`DROP KEYSPACE IF EXISTS ${KEYSPACE}_event`);
    await other.execute(`CREATE KEYSPACE ${KEYSPACE}_event WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
    await appeared;
    await other.execute(`DROP KEYSPACE ${KEYSPACE}_event`);
    await other.shutdown();
  },

  async reprepare(session) {
    const full = await table(session, 'reprepare', 'k int PRIMARY KEY, v int');
    const insert = `INSERT INTO ${full} (k, v) VALUES (?, ?)`;
    await session.execute(insert, [1, 1], { prepare: true });
    await session.execute(`DROP TABLE ${full}`);
    await session.execute(`CREATE TABLE ${full} (k int PRIMARY KEY, v int)`);
    await session.execute(insert, [2, 2], { prepare: true });
    assert.deepEqual((await session.execute(`SELECT k FROM ${full}`)).rows.map((row) => row.k), [2]);
  },
};

async function main() {
  const session = client();
  await session.connect();
  await session.execute(
    `CREATE KEYSPACE IF NOT EXISTS ${KEYSPACE} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
  let failed = 0;
  for (const name of wanted.length > 0 ? wanted : Object.keys(cases)) {
    try {
      await cases[name](session);
      console.log('ok', name);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.message}`);
    }
  }
  await session.execute(`DROP KEYSPACE ${KEYSPACE}`);
  await session.shutdown();
  if (failed > 0) {
    process.exit(1);
  }
  console.log('ok');
}

main().catch((error) => {
  console.log(`FAILED: ${error.stack}`);
  process.exit(1);
});
