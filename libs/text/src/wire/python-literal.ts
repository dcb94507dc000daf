/**
 * Parses a text as `list(ast.literal_eval(text))` does: lists and tuples of numbers, strings, `True`, `False`, `None` and lists; the
 * outermost brackets may be missing. Returns JSON text. Throws an Error if it is not a literal, a TypeError if it is not a list.
 */
export function pythonListToJson(text: string): string {
  const tokens = tokenize(text);
  let at = 0;
  const items = (close: string | undefined): string => {
    const values: string[] = [];
    while (tokens[at] !== close) {
      if (at >= tokens.length) throw new Error(`'${close === ']' ? '[' : '('}' was never closed (<unknown>, line 1)`);
      values.push(value());
      if (tokens[at] === ',') at += 1;
      else if (at < tokens.length && tokens[at] !== close) throw new Error(NO_COMMA);
    }
    at += 1;
    return `[${values.join(',')}]`;
  };
  const value = (): string => {
    const token = tokens[at]!;
    at += 1;
    if (token === '[') return items(']');
    if (token === '(') return items(')');
    return atom(token);
  };
  const outer = tokens[0];
  const wrapped = outer === '[' || outer === '(';
  if (!wrapped && !tokens.includes(',')) throw tokens.length === 1 ? notIterable(atom(outer!)) : new Error(INVALID);
  if (!wrapped) return items(undefined);
  const list = value();
  if (at < tokens.length) throw new Error(INVALID);
  return list;
}

const INVALID = 'invalid syntax (<unknown>, line 1)';
const NO_COMMA = 'invalid syntax. Perhaps you forgot a comma? (<unknown>, line 1)';
const LEADING_ZERO = 'leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers (<unknown>, line 1)';
const TOKEN = /\s*([[\](),]|'(?:[^'\\\n]|\\['"\\n])*'|"(?:[^"\\\n]|\\['"\\n])*"|[^\s[\](),'"]+)\s*/y;

function tokenize(text: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const token = TOKEN.exec(text)?.[1];
    if (token === undefined) throw new Error(INVALID);
    tokens.push(token);
  }
  if (tokens.length === 0) throw new Error(INVALID);
  return tokens;
}

const NAMES: Record<string, string> = { True: 'true', False: 'false', None: 'null' };

function atom(token: string): string {
  if (token in NAMES) return NAMES[token]!;
  const number = /^([-+]?)(\d+(?:_\d+)*|(?=\.\d))(?:\.((?:\d+(?:_\d+)*)?))?([eE][-+]?\d+)?$/.exec(token);
  if (number !== null) return numberText(number);
  if (/^['"]/.test(token))
    return JSON.stringify(token.slice(1, -1).replaceAll(/\\(.)/g, (_escape, unit: string) => (unit === 'n' ? '\n' : unit)));
  throw new Error(/^[A-Za-z_]\w*$/.test(token) ? 'malformed node or string' : INVALID);
}

function numberText([, sign, whole, fraction, exponent = '']: RegExpExecArray): string {
  const minus = sign === '-' ? '-' : '';
  const digits = (whole || '0').replaceAll('_', '');
  const isFloat = fraction !== undefined || exponent !== '';
  if (!isFloat && /^0+[1-9]/.test(digits)) throw new Error(LEADING_ZERO);
  const integer = BigInt(digits).toString();
  return isFloat ? `${minus}${integer}.${(fraction || '0').replaceAll('_', '')}${exponent}` : minus + integer;
}

const TYPES: Record<string, string> = { true: 'bool', false: 'bool', null: 'NoneType' };
/** The error of `list()` for a value that is not a list. Strings are refused too. */
function notIterable(json: string): Error {
  if (json.startsWith('"')) return new Error('malformed node or string');
  return new TypeError(`'${TYPES[json] ?? (/[.eE]/.test(json) ? 'float' : 'int')}' object is not iterable`);
}
