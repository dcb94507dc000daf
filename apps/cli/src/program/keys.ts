import { KEY_SCOPES } from '@palestra/protocol';
import { Command, Option } from 'commander';
import { addExamples, addOutput, lazy } from './define.ts';

const actions = () => import('../commands/keys.ts');

export function keysCommand(): Command {
  const keys = new Command('keys').description('manage the API keys of your organisation');
  const list = new Command('list').description('list keys').action(lazy(async () => (await actions()).listKeys));
  const create = new Command('create')
    .description('create a key; only this command shows it')
    .argument('<name>', 'name of the key')
    .addOption(new Option('--scope <scope...>', 'what the key may do (default: sessions, environments, rollouts)').choices(KEY_SCOPES))
    .action(lazy(async () => (await actions()).createKey));
  const revoke = new Command('revoke')
    .description('revoke a key: requests with it are refused from then on')
    .argument('<id>', 'id of the key')
    .action(lazy(async () => (await actions()).revokeKey));
  const rotate = new Command('rotate-secret')
    .description('replace the key that encrypts secrets of sessions; for owners of the organisation that runs the service')
    .option('--drop-previous', 'invalidate earlier signed URLs immediately')
    .action(lazy(async () => (await actions()).rotateSecret));
  keys.addCommand(addExamples(addOutput(list), 'palestra keys list', 'palestra keys list -o json'));
  keys.addCommand(
    addExamples(
      addOutput(create),
      'palestra keys create trainer --scope sessions rollouts',
      'export PALESTRA_API_KEY=$(palestra keys create me)',
    ),
  );
  keys.addCommand(addExamples(addOutput(revoke), 'palestra keys revoke 0b0e2f0a-7c63-4a0b-9f6d-5d7d3a4a2f11'));
  keys.addCommand(addExamples(addOutput(rotate), 'palestra keys rotate-secret', 'palestra keys rotate-secret --drop-previous'));
  return addExamples(keys, 'palestra keys list', 'palestra keys create trainer --scope sessions rollouts');
}
