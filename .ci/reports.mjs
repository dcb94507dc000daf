/** What .ci/run reads from the JSON reports of Vitest. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const count = (results, status) =>
  results.flatMap(({ assertionResults }) => assertionResults).filter((each) => each.status === status).length;

const commands = {
  /** "PASSED FAILED". A skipped test counts as failed, and so does a file that did not load or a run without tests. */
  count(file) {
    const { testResults } = read(file);
    const passed = count(testResults, 'passed');
    const broken = testResults.filter((result) => result.status === 'failed' && count([result], 'failed') === 0);
    const all = testResults.reduce((sum, { assertionResults }) => sum + assertionResults.length, 0);
    const failed = all - passed + broken.length;
    return [`${passed} ${passed === 0 ? failed + 1 : failed}`];
  },

  /** The `limit` slowest files of several reports: seconds, tests, name. */
  slowest(limit, ...files) {
    return files
      .flatMap((file) => read(file).testResults)
      .map(({ name, startTime, endTime, assertionResults }) => ({
        name,
        seconds: (endTime - startTime) / 1000,
        tests: assertionResults.length,
      }))
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, Number(limit))
      .map(
        ({ name, seconds, tests }) =>
          `${seconds.toFixed(1).padStart(7)} s ${String(tests).padStart(4)} tests  ${path.relative(process.cwd(), name)}`,
      );
  },
};

const [command, ...rest] = process.argv.slice(2);
for (const line of commands[command](...rest)) console.log(line);
