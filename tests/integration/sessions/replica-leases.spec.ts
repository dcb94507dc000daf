import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openPool } from '../../../apps/api/src/platform/database/pool.ts';
import { SqlReplicaLeases } from '../../../apps/api/src/sessions/persistence/replica-leases.sql.ts';
import { startCuttingProxy } from '../../support/cutting-proxy.ts';
import { sharedServer } from '../../support/server.ts';

test('a lease is renewed again after the network lost the connection of a renewal without a word', async () => {
  const { database } = await sharedServer();
  const { hostname, port } = new URL(database.connectionString);
  const sockets: Socket[] = [];
  const network = createServer((client) => {
    const server = connect(Number(port), hostname);
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) sockets.push(socket.on('error', () => {}));
  }).listen(0, '127.0.0.1');
  await once(network, 'listening');
  const target = new URL(database.connectionString);
  target.host = `127.0.0.1:${(network.address() as AddressInfo).port}`;
  const pool = openPool({ connectionString: target.href, max: 2 });
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    network.close();
    await pool.end();
  });
  const replicaId = `half-dead-${randomUUID()}`;
  const leases = new SqlReplicaLeases({ pool, replicaId, confirm: (commit) => commit() });
  const seenAt = async () => {
    const { rows } = await database.pool.query<{ seen_at: Date }>('SELECT seen_at FROM session_replicas WHERE id = $1', [replicaId]);
    return rows[0]!.seen_at.getTime();
  };
  await leases.start();
  for (const socket of sockets) socket.unpipe().pause();
  const before = await seenAt();
  await expect.poll(seenAt).toBeGreaterThan(before);
  await leases.stop();
});

test('whether a process lives is asked again while PostgreSQL is away for a moment', async () => {
  const { database } = await sharedServer();
  const target = new URL(database.connectionString);
  const network = await startCuttingProxy(Number(target.port));
  target.port = String(network.port);
  const pool = openPool({ connectionString: target.href, max: 1 });
  const otherId = `other-${randomUUID()}`;
  const other = new SqlReplicaLeases({ pool: database.pool, replicaId: otherId, confirm: (commit) => commit() });
  onTestFinished(async () => {
    await other.stop();
    await pool.end();
    await network.close();
  });
  await other.start();
  const leases = new SqlReplicaLeases({ pool, replicaId: `asks-${randomUUID()}`, confirm: (commit) => commit() });
  const accept = network.refuse();
  const alive = leases.isAlive(otherId);
  setTimeout(accept, 300);
  expect(await alive).toBe(true);
});
