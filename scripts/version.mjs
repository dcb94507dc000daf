// `npm version NEW`, by its script `version`: writes the version of the root package into every other package, their ranges for each
// other, and the constant that programs read.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const read = (file) => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
const { version } = read('package.json');
const isOurs = (name) => name === 'palestra' || name.startsWith('@palestra/');

for (const folder of ['apps', 'libs'].flatMap((area) => readdirSync(path.join(root, area)).map((name) => `${area}/${name}`))) {
  const file = `${folder}/package.json`;
  const manifest = read(file);
  manifest.version = version;
  for (const field of ['dependencies', 'peerDependencies', 'devDependencies'])
    for (const name of Object.keys(manifest[field] ?? {})) if (isOurs(name)) manifest[field][name] = `^${version}`;
  writeFileSync(path.join(root, file), `${JSON.stringify(manifest, null, 2)}\n`);
}
const constant = path.join(root, 'libs/protocol/src/version.ts');
writeFileSync(constant, readFileSync(constant, 'utf8').replace(/VERSION = '[^']*'/, `VERSION = '${version}'`));
