/** Replaces control characters, because names are untrusted. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these characters are replaced
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
}

/** Like `printable`, but keeps line breaks. */
export const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');
