import { IMPORT_FORMATS, ROLLOUT_EXPORT_FORMATS } from '@palestra/protocol';
import { Command, Option } from 'commander';
import { addDefault, addExamples, addOutput, lazy, positive } from './define.ts';

export function rolloutsCommand(): Command {
  const rollouts = new Command('rollouts').description('list, export or import rollouts');
  const list = new Command('list')
    .description('list the rollouts of a run, newest first')
    .argument('<run>', 'id or name')
    .option('--limit <count>', 'maximum rollouts', positive, 20)
    .action(lazy(async () => (await import('../commands/runs.ts')).listRollouts));
  addDefault(
    rollouts,
    addExamples(addOutput(list), 'palestra rollouts list demo-learner', 'palestra rollouts demo-learner --limit 5 -o json'),
  );
  rollouts.addCommand(exportCommand());
  rollouts.addCommand(importCommand());
  return addExamples(rollouts, 'palestra rollouts demo-learner', 'palestra rollouts export --run demo-learner --out demo');
}

function exportCommand(): Command {
  const command = new Command('export')
    .description('export rollouts as a dataset with its lineage')
    .option('--run <run>', 'run to export, by id or name (default: all runs)')
    .option('--query <query>', 'query, as in the Explorer', '')
    .addOption(new Option('--format <format>', 'format of the files').choices(ROLLOUT_EXPORT_FORMATS).default('parquet'))
    .option('--lens <lens>', 'trainer by whose definitions the columns lens_* are computed', 'canonical')
    .option('--redact', 'replace text that looks like a credential')
    .option('--shard-rows <count>', 'maximum rows per file', positive)
    .option('--keep', 'keep the export on the service after the download')
    .requiredOption('--out <folder>', 'folder for the files')
    .action(lazy(async () => (await import('../commands/export-rollouts.ts')).exportRollouts));
  return addExamples(
    addOutput(command),
    'palestra rollouts export --run demo-learner --out demo',
    "palestra rollouts export --run demo-learner --query 'reward:>0.5' --format sft --out good",
  );
}

function importCommand(): Command {
  const command = new Command('import')
    .description('upload rollouts that other tools recorded; importing a file again changes nothing')
    .argument('<files...>', 'files of OpenAI messages, Inspect, verifiers or Palestra')
    .addOption(new Option('--format <format>', 'format of the files').choices(['auto', ...IMPORT_FORMATS]).default('auto'))
    .option('--run <name>', 'run for the rollouts (Palestra files: default is the run in the file)')
    .option(
      '--scorer <name>',
      'Inspect: the score to use as reward, or NAME.KEY for a score with several values (default: the first score)',
    )
    .option('--dry-run', 'read the files without uploading them')
    .action(lazy(async () => (await import('../commands/import-rollouts.ts')).importRollouts));
  return addExamples(
    addOutput(command),
    'palestra rollouts import messages.jsonl --run baseline',
    'palestra rollouts import log.eval --run baseline --dry-run # an Inspect log',
  );
}
