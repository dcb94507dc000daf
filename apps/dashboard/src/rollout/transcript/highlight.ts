const MAX_HIGHLIGHTS = 2_000;

/** Marks every occurrence of `text` in the element. The CSS Custom Highlight API leaves the text nodes unchanged. */
export function highlight(root: HTMLElement | null, text: string): void {
  if (!('highlights' in CSS)) return;
  CSS.highlights.delete('find');
  if (!root || text === '') return;
  const needle = text.toLowerCase();
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < MAX_HIGHLIGHTS; node = walker.nextNode()) {
    const haystack = node.nodeValue!.toLowerCase();
    for (
      let at = haystack.indexOf(needle);
      at !== -1 && ranges.length < MAX_HIGHLIGHTS;
      at = haystack.indexOf(needle, at + needle.length)
    ) {
      if (at + needle.length > node.nodeValue!.length) break;
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + needle.length);
      ranges.push(range);
    }
  }
  if (ranges.length > 0) CSS.highlights.set('find', new Highlight(...ranges));
}
