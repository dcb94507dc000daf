// Builds the site: stages the documents of the repository as pages, with the API reference, and runs VitePress on them.
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'vitepress';
import { apiPages } from './api-pages.mjs';
import { stagePage, titleOf } from './pages.mjs';

const workspace = path.resolve(import.meta.dirname, '..');
const root = path.resolve(workspace, '../..');
const staged = path.join(root, '.cache/docs/pages');

/** Files outside of docs/ that are pages of the site. */
const OTHER_PAGES = {
  'README.md': 'overview',
  'CHANGELOG.md': 'changes',
  'CONTRIBUTING.md': 'contributing',
  'SECURITY.md': 'security',
  'integrations/python/README.md': 'python',
};

const filesIn = (folder) => readdirSync(path.join(root, folder), { recursive: true });
const read = (file) => readFileSync(path.join(root, file), 'utf8');

/** The page of each file of the repository, with its title. */
function pagesOf() {
  const documents = filesIn('docs').filter((name) => name.endsWith('.md'));
  const examples = filesIn('examples').filter((name) => /^[^/]+\/README\.md$/.test(name));
  const files = [
    ...documents.map((name) => [`docs/${name}`, name.slice(0, -'.md'.length).replace(/(^|\/)README$/, '$1index')]),
    ...examples.map((name) => [`examples/${name}`, `examples/${path.dirname(name)}`]),
    ...Object.entries(OTHER_PAGES),
  ];
  const pages = new Map(files.map(([file, page]) => [file, { page, title: titleOf(read(file)) }]));
  // A folder that a link names.
  return pages.set('docs/adr', pages.get('docs/README.md'));
}

function write(page, text) {
  const file = path.join(staged, `${page}.md`);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** VitePress fails for a link to a missing page; this fails for one to a missing heading. */
function assertAnchors(site) {
  const files = readdirSync(site, { recursive: true }).filter((name) => name.endsWith('.html'));
  const pages = new Map(
    files.map((name) => [`/docs/${name.replace(/(?:(^|\/)index)?\.html$/, '$1')}`, readFileSync(path.join(site, name), 'utf8')]),
  );
  const dead = [...pages].flatMap(([from, html]) =>
    [...html.matchAll(/<a [^>]*href="(?:(\/docs\/[^"#]*))?#([^"]+)"/g)]
      .filter(([, to = from, anchor]) => !pages.get(to)?.includes(`id="${decodeURIComponent(anchor)}"`))
      .map(([, to = from, anchor]) => `${from} links to ${to}#${anchor}`),
  );
  if (dead.length === 0) return;
  // Or the next build would take the site for built.
  rmSync(path.join(site, 'index.html'));
  throw new Error(`Headings that do not exist:\n${dead.join('\n')}`);
}

rmSync(staged, { recursive: true, force: true });
const pages = pagesOf();
for (const [file, { page }] of pages) {
  if (file.endsWith('.md')) write(page, stagePage(file, read(file), pages));
}
for (const { name, text } of apiPages(JSON.parse(read('docs/openapi.json')))) write(`api/${name}`, text);
for (const name of filesIn('docs').filter((one) => /\.(?:jpg|png)$/.test(one)))
  cpSync(path.join(root, 'docs', name), path.join(staged, name));
cpSync(path.join(root, 'apps/dashboard/public/favicon.svg'), path.join(staged, 'public/favicon.svg'));
await build(workspace);
assertAnchors(path.join(workspace, 'dist'));
