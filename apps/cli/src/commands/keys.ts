import { Command } from 'commander';
import { printTable } from '../output.ts';
import { withClient } from '../settings.ts';

export function keyCommands(): Command {
  const command = new Command('keys').description('manage the API keys of your organisation');
  command.command('list').action(list);
  command.command('create').argument('<name>').option('--scope <scope...>', 'sessions, environments, rollouts, keys').action(create);
  command.command('revoke').argument('<id>').action(revoke);
  command
    .command('rotate-secret')
    .description('replace the key that encrypts secrets of sessions; for owners of the organisation that runs the service')
    .option('--drop-previous', 'invalidate earlier signed URLs immediately')
    .action(rotateSecret);
  return command;
}

async function list(): Promise<void> {
  const keys = await withClient((client) => client.keys.list());
  printTable(
    ['id', 'name', 'key', 'scopes', 'last used', 'revoked'],
    keys.map(({ id, name, prefix, scopes, last_used_at, revoked_at }) => [
      id,
      name,
      `${prefix}...`,
      scopes.join(','),
      last_used_at,
      revoked_at,
    ]),
  );
}

async function create(name: string, options: { scope?: string[] }): Promise<void> {
  const { key } = await withClient((client) => client.keys.create(name, options.scope));
  process.stderr.write('Store this key now: it is shown only once.\n');
  process.stdout.write(`${key}\n`);
}

async function revoke(id: string): Promise<void> {
  const key = await withClient((client) => client.keys.revoke(id));
  process.stdout.write(`revoked ${key.name}\n`);
}

async function rotateSecret({ dropPrevious = false }: { dropPrevious?: boolean }): Promise<void> {
  const { key_replaced, resealed, unreadable, previous_keys } = await withClient((client) => client.keys.rotateSecret(dropPrevious));
  process.stdout.write(
    `${key_replaced ? 'Created a new key' : 'Kept the key of the configuration'}; encrypted the secrets of ${resealed} sessions with it\n`,
  );
  if (unreadable > 0) process.stdout.write(`${unreadable} sessions have secrets that no key of this server can decrypt\n`);
  if (!key_replaced && previous_keys > 0)
    process.stdout.write('Remove PALESTRA_PREVIOUS_SECRET_KEYS after earlier signed URLs have expired\n');
}
