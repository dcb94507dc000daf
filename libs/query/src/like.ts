/** A LIKE pattern for texts that contain `text`, with LIKE's own characters escaped. */
export function likePattern(text: string): string {
  return `%${text.replace(/[\\%_]/g, String.raw`\$&`)}%`;
}
