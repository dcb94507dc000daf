import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { transformerStyleToClass } from '@shikijs/transformers';
import { defineConfig } from 'vitepress';

const cache = path.resolve(import.meta.dirname, '../../../.cache/docs');
const pages = path.join(cache, 'pages');
const titleOf = (page) => /^# (.+)$/m.exec(readFileSync(path.join(pages, `${page}.md`), 'utf8'))[1].replaceAll('`', '');
/** Navigation entries of these pages, named by their headings unless a name is given. */
const entries = (...names) =>
  names.map((one) => (Array.isArray(one) ? one : [one])).map(([page, text]) => ({ text: text ?? titleOf(page), link: `/${page}` }));
/** The pages of a folder by name, after its index. */
const pagesIn = (folder) =>
  (existsSync(path.join(pages, folder)) ? readdirSync(path.join(pages, folder)) : [])
    .filter((name) => name.endsWith('.md'))
    .toSorted((a, b) => Number(b.startsWith('index.')) - Number(a.startsWith('index.')) || (a < b ? -1 : 1))
    .map((name) => path.posix.join(folder, path.basename(name, '.md')));

/** Colours of code as classes: the Content-Security-Policy permits no inline styles. */
const codeColours = transformerStyleToClass({ classPrefix: 'c-' });

const sidebar = [
  { text: 'Start', items: entries(['overview', 'Overview'], ['index', 'All documents']) },
  {
    text: 'Tutorials',
    items: entries(
      ['tutorials/trainer', 'Train: a first run'],
      ['tutorials/environment-author', 'Write an environment'],
      ['tutorials/researcher', 'Why the reward moved'],
      ['tutorials/operator', 'Run the service'],
    ),
  },
  {
    text: 'Environments',
    items: entries(['environments', 'Environments'], ['tasks', 'Tasks'], ['openenv', 'OpenEnv'], ['mcp', 'MCP']),
  },
  {
    text: 'Training',
    items: entries(
      ['python', 'The Python package'],
      ['evaluation', 'Evaluation'],
      ['sessions', 'Sessions'],
      ['text', 'Text sessions'],
      ['skyrl-openenv', 'SkyRL through OpenEnv'],
    ),
  },
  { text: 'Trainers', items: entries(...pagesIn('trainers'), ...pagesIn('examples')) },
  {
    text: 'Analysis',
    items: entries(['query', 'Query language'], ['exports', 'Export formats'], ['lake', 'Lake'], ['reviews', 'Review queues']),
  },
  {
    text: 'Operations',
    items: entries(
      ['operations', 'Operations'],
      ['threat-model', 'Threat model'],
      ['security', 'Security policy'],
      ['licences', 'Licences'],
    ),
  },
  {
    text: 'Reference',
    items: entries(
      ['cli', 'Command line'],
      ['errors', 'Errors'],
      ['glossary', 'Glossary'],
      ['reference/metrics', 'Metrics'],
      ['reference/failures', 'Failures'],
      ['reference/alerts', 'Alerts'],
    ),
  },
  { text: 'API', collapsed: true, items: pagesIn('api').map((page) => ({ text: titleOf(page), link: `/${page}` })) },
  {
    text: 'Design',
    collapsed: true,
    items: [
      ...entries(['architecture', 'Architecture'], ['contributing', 'Contributing'], ['changes', 'Changes']),
      {
        text: 'Wire formats',
        collapsed: true,
        items: entries(['reference/ors', 'ORS'], ['reference/openenv', 'OpenEnv'], ['reference/skyrl', 'SkyRL']),
      },
      { text: 'Decisions', collapsed: true, items: entries(...pagesIn('adr')) },
    ],
  },
];
const linksOf = (items) => items.flatMap(({ link, items: inner = [] }) => [link, ...linksOf(inner)]);
const listed = new Set(linksOf(sidebar));
// A new document is found before it has its place here.
const unlisted = pagesIn('.').filter((page) => !listed.has(`/${page}`));
sidebar.find(({ text }) => text === 'Reference').items.push(...entries(...unlisted));

export default defineConfig({
  title: 'Palestra',
  description: 'Documentation of Palestra: environments, sessions and rollouts for post-training.',
  base: '/docs/',
  cleanUrls: true,
  srcDir: pages,
  outDir: path.resolve(import.meta.dirname, '../dist'),
  cacheDir: path.join(cache, 'vitepress'),
  // The only inline scripts left are those of VitePress, which are the same on every page: the service permits them by their hash.
  metaChunk: true,
  // It would be done with an inline style.
  appearance: { disableTransition: false },
  head: [
    ['link', { rel: 'icon', href: '/docs/favicon.svg', type: 'image/svg+xml' }],
    ['link', { rel: 'stylesheet', href: '/docs/code.css' }],
  ],
  markdown: { codeTransformers: [codeColours] },
  // Two styles of VitePress itself that the policy refuses; style.css has what they do.
  transformHtml: (html) => html.replaceAll(/ style="(?:position:relative|--vp-vh:0px);"/g, ''),
  buildEnd: ({ outDir }) => writeFileSync(path.join(outDir, 'code.css'), codeColours.getCSS()),
  vite: {
    // Inlined assets would be data: URLs, which the CSP (img-src, font-src 'self') refuses.
    build: { assetsInlineLimit: 0, license: { fileName: 'THIRD-PARTY-LICENSES.txt' } },
    logLevel: 'warn',
  },
  themeConfig: {
    logo: '/favicon.svg',
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    nav: [
      { text: 'Tutorials', link: '/tutorials/trainer', activeMatch: '^/tutorials/' },
      { text: 'Environments', link: '/environments', activeMatch: '^/(environments|tasks|openenv|mcp)' },
      { text: 'Training', link: '/python' },
      { text: 'Operations', link: '/operations' },
      { text: 'Reference', link: '/cli' },
      { text: 'API', link: '/api/runs', activeMatch: '^/api/' },
    ],
    sidebar,
  },
});
