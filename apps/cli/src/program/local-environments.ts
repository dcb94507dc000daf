import type { Command } from 'commander';
import { devCommand } from '../commands/env/dev.ts';
import { initCommand } from '../commands/env/init.ts';
import { pushCommand } from '../commands/env/push.ts';
import { serveCommand } from '../commands/env/serve.ts';
import { validateCommand } from '../commands/env/validate.ts';
import { addExamples, addOutput } from './define.ts';

/** The commands for environments on this machine. Their modules are large: `buildProgram` loads this one only for a command line that needs it. */
export function localEnvironmentCommands(): Command[] {
  return [
    addExamples(addOutput(initCommand()), 'palestra env init guess', 'palestra env init guess --python --dir environments'),
    addExamples(addOutput(devCommand()), 'palestra env dev', 'palestra env dev guess --name acme/guess'),
    addExamples(addOutput(validateCommand()), 'palestra env validate guess', 'palestra env validate --url http://127.0.0.1:8000 --json'),
    addExamples(
      addOutput(serveCommand()),
      'palestra env serve guess --port 9000',
      'palestra env serve ghcr.io/acme/guess:1.0 --memory 512m',
      'palestra env serve guess --port 0 -o jsonl # one line with the address and the environments',
    ),
    addExamples(
      addOutput(pushCommand()),
      'palestra env push guess --detach',
      'palestra env push --url http://127.0.0.1:8000 --name acme/guess',
      'palestra env push guess --detach -o json | jq .version',
    ),
  ];
}
