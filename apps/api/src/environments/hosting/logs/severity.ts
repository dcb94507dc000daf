import { isObject, type LogSeverity } from '@palestra/protocol';

/** Characters of a line that are searched. */
const HEAD = 160;
const UPPER = /(?:^|[\s[("'|=<])(TRACE|DEBUG|VERBOSE|INFO|NOTICE|WARN|WARNING|ERR|ERROR|SEVERE|CRITICAL|FATAL|PANIC)(?:[\s\]):|>!"',]|$)/;
const PREFIX = /^(?:[\w./-]{1,60}:?\s)?(debug|info|warning|warn|error|fatal)\s?[:!]/i;
const NPM = /^npm (warn|error)\b/i;
const RAISED = /^(?:Traceback \(most recent call last\)|[A-Za-z_][\w.]{0,100}(?:Error|Exception)(?::|$))/;
const FIELDS = ['level', 'severity', 'levelname', 'lvl'];
/** Levels of pino and bunyan. */
const ERROR_LEVEL = 50;
const WARNING_LEVEL = 40;
const INFO_LEVEL = 30;

/**
 * Guesses the severity of the lines of one stream, in their order: from the fields of a JSON line, from a word as in `ERROR:`, from an exception
 * of Python. An indented line continues the line before it. `fallback`: of a line that says nothing.
 */
export class SeverityGuess {
  #last: LogSeverity;

  constructor(private readonly fallback: LogSeverity) {
    this.#last = fallback;
  }

  of(text: string): LogSeverity {
    if (!/^\s+\S/.test(text)) this.#last = fromJson(text) ?? fromWords(text.slice(0, HEAD)) ?? this.fallback;
    return this.#last;
  }
}

function fromJson(text: string): LogSeverity | null {
  if (!text.startsWith('{') || !text.endsWith('}')) return null;
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(line)) return null;
  const level = FIELDS.map((field) => line[field]).find((value) => value !== undefined);
  if (typeof level === 'string') return severityOf(level);
  if (typeof level !== 'number') return null;
  if (level >= ERROR_LEVEL) return 'error';
  if (level >= WARNING_LEVEL) return 'warning';
  return level >= INFO_LEVEL ? 'info' : 'debug';
}

function fromWords(head: string): LogSeverity | null {
  if (RAISED.test(head)) return 'error';
  const word = UPPER.exec(head)?.[1] ?? PREFIX.exec(head)?.[1] ?? NPM.exec(head)?.[1];
  return word === undefined ? null : severityOf(word);
}

function severityOf(word: string): LogSeverity | null {
  switch (word.toLowerCase()) {
    case 'trace':
    case 'debug':
    case 'verbose':
      return 'debug';
    case 'info':
    case 'notice':
    case 'information':
      return 'info';
    case 'warn':
    case 'warning':
      return 'warning';
    case 'err':
    case 'error':
    case 'severe':
    case 'critical':
    case 'fatal':
    case 'panic':
    case 'emergency':
    case 'alert':
      return 'error';
    default:
      return null;
  }
}
