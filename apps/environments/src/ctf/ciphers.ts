/** The ciphers of notes. */
export const METHODS = ['base64', 'hex', 'rot13', 'reverse', 'vigenere'] as const;
export type Method = (typeof METHODS)[number];

const isLower = (code: number) => code >= 97 && code <= 122;
const isUpper = (code: number) => code >= 65 && code <= 90;

function rotate(character: string, by: number): string {
  const code = character.charCodeAt(0);
  const first = isLower(code) ? 97 : isUpper(code) ? 65 : null;
  return first === null ? character : String.fromCharCode(first + ((((code - first + by) % 26) + 26) % 26));
}

const rot13 = (text: string): string => text.replaceAll(/[a-z]/gi, (character) => rotate(character, 13));
const reverse = (text: string): string => [...text].toReversed().join('');

/** Shifts letters by the letters of the key in turn. Other characters stay and use no letter of the key. */
function vigenere(text: string, key: string, direction: 1 | -1): string {
  const shifts = [...key.toLowerCase()].map((letter) => letter.charCodeAt(0) - 97);
  let used = 0;
  return text.replaceAll(/[a-z]/gi, (character) => rotate(character, direction * shifts[used++ % shifts.length]!));
}

export function encode(text: string, method: Method, key = ''): string {
  switch (method) {
    case 'base64':
    case 'hex':
      return Buffer.from(text, 'utf8').toString(method);
    case 'rot13':
      return rot13(text);
    case 'reverse':
      return reverse(text);
    case 'vigenere':
      return vigenere(text, key, 1);
  }
}

/** Never throws: invalid input decodes to something. A vigenere key must be letters. */
export function decode(text: string, method: Method, key = ''): string {
  switch (method) {
    case 'base64':
    case 'hex':
      return Buffer.from(text.trim(), method).toString('utf8');
    case 'vigenere':
      return vigenere(text, key, -1);
    default:
      return encode(text, method);
  }
}
