/** A LIKE pattern for texts that contain `text`; special characters of LIKE are escaped. */
export function likePattern(text: string): string {
  return `%${text.replace(/[\\%_]/g, String.raw`\$&`)}%`;
}
