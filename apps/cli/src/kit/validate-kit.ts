/**
 * A child process: `node validate-kit.js FILE OPTIONS` validates the environments of a module and sends the reports to its parent. A module that
 * hangs, exits or crashes does not affect the parent.
 */
import { validateEnvironment, type ValidateOptions } from '@palestra/environment-kit';
import { loadEnvironments } from '@palestra/hosting';
import type { EnvironmentReport } from '@palestra/protocol';

export interface NamedReport {
  name: string;
  report: EnvironmentReport;
}
export type ValidationMessage = { reports: NamedReport[] } | { error: string };

const [file, options] = process.argv.slice(2);
if (file === undefined || options === undefined) throw new Error('usage: validate-kit FILE OPTIONS');

const send = (message: ValidationMessage) => process.send!(message, () => process.exit(0));
// An unhandled rejection of one session is a failure of the environment, which its checks report.
process.on('unhandledRejection', (error) => console.error('Unhandled rejection:', error));
process.on('disconnect', () => process.exit(1));
try {
  const reports: NamedReport[] = [];
  for (const environment of await loadEnvironments(file)) {
    reports.push({ name: environment.name, report: await validateEnvironment(environment, JSON.parse(options) as ValidateOptions) });
  }
  send({ reports });
} catch (error) {
  send({ error: error instanceof Error ? error.message : String(error) });
}
