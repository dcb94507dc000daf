/**
 * What a failure has in common with others of the same cause: one line of its text, in which the words that name tools, arguments,
 * statuses and exceptions stay, and the parts that differ between rollouts are placeholders. Pure. At most `MAX_READ` characters are read
 * and `MAX_LINE` are matched, so that the time does not grow with a hostile text.
 */

/** Characters that are read of a longer text: so many in all, and of them so many at its start. */
export const READ_PART = { characters: 20_000, head: 4_000 } as const;
const { characters: MAX_READ, head: MAX_HEAD } = READ_PART;
const MAX_LINE = 1_000;
const MAX_LINES = 400;
const MAX_NORMALISED = 200;
const MAX_FIELDS = 3;

/** The part of a text that decides its fingerprint: all of it, or its start and end. Counts code points, as PostgreSQL does. */
export function readPart(text: string): string {
  if (text.length <= MAX_READ) return text;
  if (text.length <= 2 * MAX_READ && [...text].length <= MAX_READ) return text;
  const tail = MAX_READ - MAX_HEAD;
  const head = Array.from(text.slice(0, 2 * MAX_HEAD)).slice(0, MAX_HEAD);
  return `${head.join('')}\n${Array.from(text.slice(-2 * tail))
    .slice(-tail)
    .join('')}`;
}

/** The line that says what went wrong, as it was sent. Empty without a letter or digit. */
export function errorLine(text: string): string {
  const part = readPart(text).trim();
  const inner = textOfJson(part) ?? (/^<(?:!doctype|html|head|body)\b/i.test(part) ? part.replaceAll(/<[^<>]{0,400}>/g, ' ') : part);
  return (fieldErrors(inner) ?? lineOf(inner)).replaceAll(/\s+/g, ' ').trim().slice(0, MAX_LINE);
}

/** The error inside of a JSON object: `{"error": {"message": …}}`, `{"detail": […]}`. Null for other texts. */
function textOfJson(text: string): string | null {
  if (!text.startsWith('{') && !text.startsWith('[')) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  return messageOf(value, 3);
}

const MESSAGE_KEYS = ['error', 'message', 'detail', 'msg', 'reason', 'stderr', 'text', 'errors'];

function messageOf(value: unknown, depth: number): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value;
  if (depth === 0 || typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) {
    const parts = value.slice(0, MAX_FIELDS).flatMap((one: unknown) => fieldOf(one) ?? messageOf(one, depth - 1) ?? []);
    return parts.length === 0 ? null : parts.join('; ');
  }
  const members = value as Record<string, unknown>;
  for (const key of MESSAGE_KEYS) {
    const found = Object.hasOwn(members, key) ? messageOf(members[key], depth - 1) : null;
    if (found === null) continue;
    const code = ['code', 'status', 'type', 'error_type', 'error'].map((name) => members[name]).find((one) => isCode(one) && one !== found);
    return code === undefined || found.includes(String(code)) ? found : `${String(code)}: ${found}`;
  }
  return null;
}

const isCode = (value: unknown): value is string | number =>
  typeof value === 'string' ? /^[A-Za-z][\w.-]{0,60}$/.test(value) : typeof value === 'number' && value >= 400 && value <= 599;

/** `culprit: Extra inputs are not permitted`, of an entry of a validation error as FastAPI and pydantic send it. */
function fieldOf(value: unknown): string | null {
  const { loc, msg } = (value ?? {}) as { loc?: unknown; msg?: unknown };
  if (!Array.isArray(loc) || typeof msg !== 'string') return null;
  const name = loc.findLast((part): part is string => typeof part === 'string');
  return name === undefined ? msg : `${name}: ${msg}`;
}

/** Field and message of each error that pydantic prints, in one line; null for other texts. */
function fieldErrors(text: string): string | null {
  const lines = text.split('\n', MAX_LINES);
  const title = lines.findIndex((line) => /^.{0,200}\b\d+ validation errors? for \S/.test(line));
  if (title === -1) return fieldErrorsOfRepr(text);
  const found: string[] = [];
  for (let at = title + 1; at + 1 < lines.length && found.length < MAX_FIELDS; at += 1) {
    const message = lines[at + 1]!;
    if (/^[\w.[\]-]{1,80}$/.test(lines[at]!.trim()) && /^\s+\S/.test(message) && !message.includes('For further information'))
      found.push(`'${lines[at]!.trim()}': ${message.trim().replace(/\s*\[type=([\w.]{1,60}),.*$/, ' [$1]')}`);
  }
  const model = /\b\d+ validation errors? for (\S{1,80})/.exec(lines[title]!)![1]!;
  return found.length === 0 ? null : `validation error for ${model}: ${found.join('; ')}`;
}

/** The same of a list in the notation of Python. */
function fieldErrorsOfRepr(text: string): string | null {
  const found: string[] = [];
  for (const [, location, message] of text
    .slice(0, MAX_HEAD)
    .matchAll(/'loc': ?[[(]([^\])]{0,80})[\])][^{}]{0,120}?'msg': ?'([^']{1,120})'/g)) {
    const name = /'([^']*)'[^']*$/.exec(location!)?.[1];
    found.push(name === undefined ? message! : `'${name}': ${message!}`);
    if (found.length === MAX_FIELDS) break;
  }
  return found.length === 0 ? null : found.join('; ');
}

const EXCEPTION = /^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Timeout|Interrupt|Exit|Failure|Expired)\b/;
const SAYS =
  /\b[45]\d\d [A-Z][a-z]|error|exception|fail|invalid|unexpected|unknown|denied|refused|tim(?:ed?|e-) ?out|missing|cannot|can't|unable|not |no such/i;

function lineOf(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.slice(0, MAX_LINE))
    .filter((line) => /[\p{L}\p{N}]/u.test(line));
  const exception = lines.findLast((line) => EXCEPTION.test(line));
  if (exception !== undefined) return exception;
  if (lines.some((line) => line.startsWith('Traceback (most recent call last)'))) return lines.findLast((line) => !/^\s/.test(line)) ?? '';
  return lines.find((line) => SAYS.test(line)) ?? lines[0] ?? '';
}

/** A quoted word stays if the words around it say that it names something. */
const NAMES = String.raw`arguments?|args?|parameters?|params?|fields?|propert(?:y|ies)|keys?|keyword|tools?|functions?|methods?|attribute|modules?|commands?|options?|flags?|columns?|variables?|header|class|name|type|action`;
const NAMED_BEFORE = new RegExp(
  String.raw`(?:\b(?:${NAMES})(?: named| called)?[:=]?\s*|\b(?:missing|unexpected|required|unknown|unrecognized)(?: keyword| positional)?:?\s*|\b(?:Key|Name|Attribute|Import|ModuleNotFound)Error:\s*)[[(]?$`,
  'i',
);
const NAMED_AFTER = new RegExp(
  String.raw`^(?:\s+(?:(?:is|was|are|were)\b.{0,24}\b(?:${NAMES}|unexpected|required|missing|defined|recognized|recognised|callable|permitted)\b)|: )`,
  'i',
);
const WORD = /^[\p{L}_][\p{L}\p{N}_.:-]{0,60}$/u;

const HTTP_STATUS = /^[45]\d\d [A-Z][A-Za-z -]{2,40}$/;

/** Replaces the payload of quotes, and keeps names in them. */
function normaliseQuotes(line: string): string {
  let kept = false;
  let end = 0;
  return line.replaceAll(/"([^"]{0,400})"|'((?:[^'\\]|\\.){0,400})'(?![\p{L}\p{N}])|`([^`]{0,400})`/gu, (all, ...found: unknown[]) => {
    const [double, single, back, at] = found as [string?, string?, string?, number?];
    const word = double ?? single ?? back ?? '';
    const before = line.slice(Math.max(0, at! - 48), at);
    const between = line.slice(end, at);
    const isName =
      WORD.test(word) &&
      (NAMED_BEFORE.test(before) ||
        NAMED_AFTER.test(line.slice(at! + all.length, at! + all.length + 60)) ||
        (kept && /^(?:, | and | or )$/.test(between)));
    kept = isName;
    end = at! + all.length;
    return isName || HTTP_STATUS.test(word) ? `'${word}'` : `'…'`;
  });
}

/** A number after these words is a status. */
const STATUS =
  /(?:\bexit(?:ed)?(?: with)?(?: non-?zero)?(?: exit)?(?: status| code)*|\berrno|\bsignal|\bstatus(?:[ _]code)?|\bcode|\bHTTP(?:\/\d(?:\.\d)?)?|\berror)[ :=#([]*$/i;
const REASON =
  /^ (?:Bad|Unauthorized|Payment|Forbidden|Not|Method|Request|Conflict|Gone|Length|Precondition|Payload|URI|Unsupported|Unprocessable|Too|Internal|Service|Gateway|Client|Server)\b/i;

/** From the innermost object or list outwards. */
function withoutJson(line: string): string {
  let text = line;
  for (let depth = 0; depth < 4; depth += 1) text = text.replaceAll(/\{[^{}]{2,}\}|\[[^[\]]{0,400}[:,{<][^[\]]{0,400}\]/g, '<data>');
  return text;
}

/**
 * The error of a text without the parts that differ between rollouts: `accuse() got an unexpected keyword argument 'culprit'`,
 * `502 Bad Gateway`, `no number <n> at <address>`.
 */
export function normaliseError(text: string): string {
  const line = errorLine(text)
    .replaceAll(/\b(input_value|input|value|got)=.{0,200}?(?=, input_type=|, url=|\]|$)/g, '$1=…')
    .replaceAll(/\b[a-z][a-z\d+.-]{1,15}:\/\/[^\s'"<>)\]}]{1,400}/gi, '<url>')
    .replaceAll(/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?/g, '<time>')
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<id>')
    .replaceAll(/\b0x[0-9a-z]+/gi, '<address>')
    .replaceAll(/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g, '<address>');
  return withoutJson(normaliseQuotes(line))
    .replaceAll(/(?:~|\.{1,2})?(?:\/[\w.@+-]+){2,}\/?|\b[A-Za-z]:\\[^\s'":]+/g, '<path>')
    .replaceAll(/\b(?=[A-Za-z]*\d)(?:[0-9a-f]{8,}|[A-Za-z\d_-]{24,})\b/gi, '<id>')
    .replaceAll(/\d+(?:[.,]\d+)*/g, (number: string, at: number, whole: string) => {
      if (/^\d\.\d$/.test(number) && whole.slice(Math.max(0, at - 5), at) === 'HTTP/') return number;
      const isStatus = STATUS.test(whole.slice(Math.max(0, at - 40), at)) && number.length <= 3;
      const rest = whole.slice(at + 3, at + 24);
      const isHttp = /^[45]\d\d$/.test(number) && (REASON.test(rest) || (at === 0 && /^(?:: |$)/.test(rest)));
      return isStatus || isHttp || (/[a-z]$/i.test(whole.slice(Math.max(0, at - 1), at)) && number.length <= 2) ? number : '<n>';
    })
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_NORMALISED)
    .trimEnd();
}
