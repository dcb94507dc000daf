/** The reference to a stored image of a message: SHA-256 and type. */
const OBJECT = /palestra-object:([0-9a-f]{64}\.(?:png|jpeg|gif|webp))/g;

/** Names of the stored images in a text, without repeats, in order. */
export const imagesOf = (text: string): string[] => [...new Set([...text.matchAll(OBJECT)].map((match) => match[1]!))];

/** Replaces each image reference with `[image N]`. */
export function withoutImageNames(text: string): string {
  const images = imagesOf(text);
  return images.length === 0 ? text : text.replaceAll(OBJECT, (_, name: string) => `[image ${images.indexOf(name) + 1}]`);
}

interface Part {
  type: string;
  text?: unknown;
}
const isPart = (value: unknown): value is Part =>
  value !== null && typeof value === 'object' && typeof (value as { type?: unknown }).type === 'string';

/** The text of an OpenAI content list (`[{"type":"text",…},{"type":"image_url",…}]`); null for other values. */
export function textOfParts(value: unknown): string | null {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isPart)) return null;
  if (!value.some(({ type }) => /^(input_|output_)?(text|image|image_url)$/.test(type))) return null;
  return value.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n\n');
}
