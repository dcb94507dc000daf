import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';

/** The rules of the Role in docs/hosting.md: tests run with exactly these. */
export const documentedRules = (): object[] => rulesOf('palestra-instances');

/** With those for agent-sandbox. */
export const agentSandboxRules = (): object[] => [...documentedRules(), ...rulesOf('palestra-agent-sandbox')];

/** Of API processes, for sandboxes alone. */
export const sandboxRules = (): object[] => rulesOf('palestra-sandboxes');

function rulesOf(name: string): object[] {
  const text = readFileSync(path.resolve(import.meta.dirname, '../../../docs/hosting.md'), 'utf8');
  const role = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)]
    .map(([, block]) => parse(block!))
    .find((block) => block?.kind === 'Role' && block.metadata.name === name);
  if (!Array.isArray(role?.rules)) throw new Error(`docs/hosting.md has no Role ${name}`);
  return role.rules;
}
