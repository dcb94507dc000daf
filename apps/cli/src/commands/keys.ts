import { printable, type Printed, printList, printOne } from '../output.ts';
import { withClient } from '../settings.ts';

export async function listKeys(options: Printed): Promise<void> {
  const keys = await withClient((client) => client.keys.list());
  await printList(options, keys, [
    ['id', ({ id }) => id],
    ['name', ({ name }) => name],
    ['key', ({ prefix }) => `${prefix}...`],
    ['scopes', ({ scopes }) => scopes.join(',')],
    ['last used', ({ last_used_at }) => last_used_at],
    ['revoked', ({ revoked_at }) => revoked_at],
  ]);
}

export async function createKey(name: string, options: Printed & { scope?: string[] }): Promise<void> {
  const created = await withClient((client) => client.keys.create(name, options.scope));
  process.stderr.write('Store this key now: it is shown only once.\n');
  await printOne(options, created, () => void process.stdout.write(`${created.key}\n`));
}

export async function revokeKey(id: string, options: Printed): Promise<void> {
  const key = await withClient((client) => client.keys.revoke(id));
  await printOne(options, key, () => void process.stdout.write(`revoked ${printable(key.name)}\n`));
}

export async function rotateSecret(options: Printed & { dropPrevious?: boolean }): Promise<void> {
  const rotated = await withClient((client) => client.keys.rotateSecret(options.dropPrevious ?? false));
  const { key_replaced, resealed, unreadable, previous_keys } = rotated;
  await printOne(options, rotated, () => {
    const what = key_replaced ? 'Created a new key' : 'Kept the key of the configuration';
    process.stdout.write(`${what}; encrypted the secrets of ${resealed} sessions with it\n`);
    if (unreadable > 0) process.stdout.write(`${unreadable} sessions have secrets that no key of this server can decrypt\n`);
    if (!key_replaced && previous_keys > 0)
      process.stdout.write('Remove PALESTRA_PREVIOUS_SECRET_KEYS after earlier signed URLs have expired\n');
  });
}
