/** A Markdown list item in lines of at most 120 characters. Code spans are not split. */
export function wrapItem(text) {
  const lines = ['-'];
  for (const word of text.match(/(?:`[^`]*`|[^\s`])+/g)) {
    if (lines.at(-1).length + 1 + word.length > 120) lines.push(' ');
    lines[lines.length - 1] += ` ${word}`;
  }
  return lines.join('\n');
}
