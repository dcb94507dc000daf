// `npm run pack:all -- --out DIR`: builds, then writes the tarball of every workspace, as npm would publish it. Workspaces are private
// here, because what is published differs: no sources, no tests, no condition `@palestra/source`. `--no-build`: takes the last build.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const root = path.resolve(import.meta.dirname, '..');
const SOURCE_CONDITION = '@palestra/source';
/** For users of this repository only. */
const UNPUBLISHED = ['private', 'scripts', 'devDependencies'];
const COMPILED = /^(.+?)(?:\.d)?\.(?:[mc]?js|[mc]?ts|json)(?:\.map)?$/;
const SOURCES = ['.ts', '.mts', '.cts', '.mjs', '.cjs', '.json'];

const workspaces = () => ['apps', 'libs'].flatMap((area) => readdirSync(path.join(root, area)).map((name) => path.join(root, area, name)));

/** A bundler compiled it: its dependencies are in its files, which have other names than its sources. */
const isBundle = (workspace) => existsSync(path.join(workspace, 'dist/index.html'));

/** The package.json to publish. Types are named, although TypeScript would find them, for readers and other tools. */
function publishedManifest(workspace) {
  const manifest = JSON.parse(readFileSync(path.join(workspace, 'package.json'), 'utf8'));
  for (const field of UNPUBLISHED) delete manifest[field];
  if (isBundle(workspace)) delete manifest.dependencies;
  for (const [name, target] of Object.entries(manifest.exports)) {
    if (target[SOURCE_CONDITION]) manifest.exports[name] = { types: target.default.replace(/\.js$/, '.d.ts'), default: target.default };
  }
  if (manifest.imports) manifest.imports = withoutSources(manifest.imports);
  return manifest;
}

/** Conditions, which may be nested, without that of the sources. */
function withoutSources(target) {
  if (typeof target === 'string') return target;
  const conditions = Object.entries(target).filter(([condition]) => condition !== SOURCE_CONDITION);
  return Object.fromEntries(conditions.map(([condition, inner]) => [condition, withoutSources(inner)]));
}

/** Whether a file of `dist` comes from a source that is there now and is no test. */
function isPublished(workspace, file) {
  const base = COMPILED.exec(file)?.[1];
  return (
    base !== undefined && !/\.(?:spec|fixture)$/.test(base) && SOURCES.some((type) => existsSync(path.join(workspace, 'src', base + type)))
  );
}

/** Bundlers keep records of a build in hidden folders. */
const isVisible = (file) => !path.basename(file).startsWith('.');

function copyCompiled(workspace, target) {
  const dist = path.join(workspace, 'dist');
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const file = path.relative(dist, path.join(entry.parentPath, entry.name));
    if (!entry.isFile() || !isPublished(workspace, file)) continue;
    const text = readFileSync(path.join(dist, file), 'utf8');
    mkdirSync(path.dirname(path.join(target, file)), { recursive: true });
    writeFileSync(path.join(target, file), /\.d\.[mc]?ts$/.test(file) ? withCompiledImports(text) : text);
  }
}

/** Declarations name the sources that they come from (`./tool.ts`), which are not published. */
const withCompiledImports = (text) => text.replaceAll(/(\bfrom |\bimport ?\(?)(['"])(\.[^'"]*)\.([mc]?)ts\2/g, '$1$2$3.$4js$2');

const readme = ({ name, description }) => `# ${name}

${description}

This package is a part of Palestra and may change in any version. To run the service: \`npx palestra up\`. For programs of
your own there are \`@palestra/environment-kit\`, \`@palestra/client\` and \`@palestra/protocol\`.
`;

/** Writes the folder that npm packs. */
function stage(workspace, target) {
  const manifest = publishedManifest(workspace);
  mkdirSync(target, { recursive: true });
  writeFileSync(path.join(target, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  cpSync(path.join(root, 'LICENSE'), path.join(target, 'LICENSE'));
  const ownReadme = path.join(workspace, 'README.md');
  writeFileSync(path.join(target, 'README.md'), existsSync(ownReadme) ? readFileSync(ownReadme) : readme(manifest));
  for (const folder of manifest.files) {
    if (folder === 'dist' && !isBundle(workspace)) copyCompiled(workspace, path.join(target, folder));
    else cpSync(path.join(workspace, folder), path.join(target, folder), { recursive: true, filter: isVisible });
  }
  return { manifest, folder: target };
}

/** Packs the last build. Returns each package's manifest, the folder below `staging` that was packed, and its tarball. */
export function packAll(out, staging) {
  mkdirSync(out, { recursive: true });
  const packages = workspaces().map((workspace) => stage(workspace, path.join(staging, path.basename(workspace))));
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', path.resolve(out), ...packages.map(({ folder }) => folder)];
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: staging, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(stderr);
  const packed = new Map(Object.values(JSON.parse(stdout)).map((one) => [one.name, one]));
  return packages.map((one) => {
    const { filename, size, unpackedSize, entryCount } = packed.get(one.manifest.name);
    return { ...one, tarball: path.resolve(out, filename), size, unpackedSize, entryCount };
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const at = process.argv.indexOf('--out');
  const out = at > 0 ? process.argv[at + 1] : undefined;
  if (out === undefined) {
    console.error('usage: npm run pack:all -- --out <folder> [--no-build]');
    process.exit(2);
  }
  if (!process.argv.includes('--no-build')) {
    const { status } = spawnSync(process.execPath, [path.join(root, 'scripts/build.mjs')], { stdio: 'inherit' });
    if (status !== 0) process.exit(1);
  }
  const staging = mkdtempSync(path.join(tmpdir(), 'palestra-pack-'));
  try {
    // npm runs this in the folder of package.json, and `INIT_CWD` is where the user typed it.
    const packages = packAll(path.resolve(process.env.INIT_CWD ?? process.cwd(), out), staging);
    for (const { tarball, size, entryCount } of packages)
      console.log(`${(size / 1024).toFixed(0).padStart(6)} kB ${String(entryCount).padStart(5)} files  ${tarball}`);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}
