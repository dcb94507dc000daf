/** Places that are marked at once; more cannot be told apart. */
const MOST = 2_000;

/** Marks every place of `text` in the element by the CSS Custom Highlight API, so that no text node of a stranger is touched. */
export function highlight(root: HTMLElement | null, text: string): void {
  if (!('highlights' in CSS)) return;
  CSS.highlights.delete('find');
  if (!root || text === '') return;
  const wanted = text.toLowerCase();
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < MOST; node = walker.nextNode()) {
    const words = node.nodeValue!.toLowerCase();
    for (let at = words.indexOf(wanted); at !== -1 && ranges.length < MOST; at = words.indexOf(wanted, at + wanted.length)) {
      if (at + wanted.length > node.nodeValue!.length) break;
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  if (ranges.length > 0) CSS.highlights.set('find', new Highlight(...ranges));
}
