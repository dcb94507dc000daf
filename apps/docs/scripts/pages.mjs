// How a document of the repository becomes a page: its links lead to pages.
import path from 'node:path';

const LINK = /(?<!!)\[([^[\]]+)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)/g;
const IMAGE = /!\[([^[\]]*)\]\((?!https?:)([^)\s]+)\)/g;
const REFERENCE = /^(\[[^\]]+\]: )(?!https?:)(\S+?)(#\S*)?$/gm;

/** The parts of a document outside of its code. */
function outsideOfCode(text, replace) {
  return text
    .split(/(^ *```[^]*?^ *```$|`[^`\n]+`)/m)
    .map((part, index) => (index % 2 === 1 ? part : replace(part)))
    .join('');
}

/** The heading of a document. */
export const titleOf = (text) => /^# (.+)$/m.exec(text)[1].replaceAll('`', '');

/**
 * The text of the page of `file`. `pages`: for each file its page and the title of this page, which replaces the name of the file as the
 * text of a link. A link to an example or to the chart that is no page becomes its text. Throws for a link to another file that is no page.
 */
export function stagePage(file, text, pages) {
  const target = (link) => path.posix.join(path.posix.dirname(file), link).replace(/\/$/, '');
  const resolve = (link) => {
    const page = pages.get(target(link)) ?? pages.get(`${target(link)}/README.md`);
    if (page === undefined) throw new Error(`${file} links to ${link}, which is no page of the site (apps/docs/scripts/build.mjs)`);
    return page;
  };
  /** From the page to the copy of an image, which is staged at its place in docs/. */
  const image = (link) => {
    const place = path.posix.relative(path.posix.dirname(pages.get(file)?.page ?? ''), target(link).replace(/^docs\//, ''));
    return place.startsWith('.') ? place : `./${place}`;
  };
  return outsideOfCode(text, (part) =>
    part
      .replaceAll(IMAGE, (_all, label, link) => `![${label}](${image(link)})`)
      .replaceAll(/\[([^\]]+)\]\((?:\.\.\/)?(?:docs\/)?openapi\.json\)/g, '<a href="/openapi.json" target="_self">$1</a>')
      .replaceAll(LINK, (_all, label, link, anchor = '') => {
        // Code that a reader has in the repository.
        if (/^(?:examples|deploy)\//.test(target(link)) && !pages.has(`${target(link)}/README.md`)) return label;
        const { page, title } = resolve(link);
        return `[${label.endsWith('.md') ? title : label}](/${page}${anchor})`;
      })
      .replaceAll(REFERENCE, (_all, start, link, anchor = '') => `${start}/${resolve(link).page}${anchor}`),
  );
}
