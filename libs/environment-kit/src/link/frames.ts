import { errorCatalogue, type ErrorCode, PalestraError } from '@palestra/protocol';
import type { Socket } from 'node:net';
import { ToolRaisedError } from '../host/episode.ts';
import type { CallResult } from '../host/tool-output.ts';

/**
 * The private protocol between the API and its child processes: one socket, one JSON document per line. Request
 * `{"id","method","params"}`, cancellation `{"cancel":id}`, response `{"id","result"}` or `{"id","error"}`. A tool call has the response
 * `{"id",...,"text":<RunToolOutput>}`; the reader extracts the last member as text without parsing it.
 */
export interface RequestFrame {
  id: number;
  method: string;
  params: unknown;
}
export interface ErrorFrame {
  code: ErrorCode | 'tool_raised';
  detail: string | object[];
  status?: number;
}

/** Longer lines end the connection. */
const MAX_LINE_LENGTH = 128 * 1024 * 1024;
const TEXT_MEMBER = ',"text":';

export function encodeCallResult(id: number, { text, ok, reason, reward, finished }: CallResult): string {
  return `{"id":${id},"call":${JSON.stringify({ ok, reason, reward, finished })}${TEXT_MEMBER}${text}}`;
}

export interface AnswerFrame {
  id: number;
  result?: unknown;
  error?: ErrorFrame;
}

export function decodeAnswer(line: string): AnswerFrame {
  // Only call results have "call" as second member. The members before the text cannot contain the marker.
  const isCall = /^\{"id":\d+,"call":/.test(line.slice(0, 32));
  if (!isCall) return JSON.parse(line) as AnswerFrame;
  const border = line.indexOf(TEXT_MEMBER);
  const { id, call } = JSON.parse(`${line.slice(0, border)}}`) as { id: number; call: Omit<CallResult, 'text'> };
  return { id, result: { ...call, text: line.slice(border + TEXT_MEMBER.length, -1) } };
}

export function toErrorFrame(error: unknown): ErrorFrame {
  if (error instanceof ToolRaisedError) return { code: 'tool_raised', detail: error.message };
  if (error instanceof PalestraError) return { code: error.code, detail: error.detail, status: error.status };
  return { code: 'environment_failed', detail: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
}

export function fromErrorFrame({ code, detail, status }: ErrorFrame): Error {
  if (code === 'tool_raised') return new ToolRaisedError(new Error(String(detail)));
  if (!Object.hasOwn(errorCatalogue, code)) return new PalestraError('backend_invalid', { detail: `unknown error ${code}` });
  return new PalestraError(code, { detail, status });
}

/** Calls `onLine` for each complete line. */
export function readLines(socket: Socket, onLine: (line: string) => void): void {
  let pieces: string[] = [];
  let length = 0;
  socket.setEncoding('utf8');
  socket.on('data', (data: Buffer | string) => {
    let text = data as string;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n')) {
      pieces.push(text.slice(0, end));
      const line = pieces.length === 1 ? pieces[0]! : pieces.join('');
      pieces = [];
      length = 0;
      text = text.slice(end + 1);
      onLine(line);
    }
    if (text === '') return;
    pieces.push(text);
    length += text.length;
    if (length > MAX_LINE_LENGTH) socket.destroy(new Error('a line of the link is too long'));
  });
}

/** Writes lines; lines of one turn of the event loop are written together. */
export function lineWriter(socket: Socket): (line: string) => void {
  let buffered = '';
  return (line) => {
    if (buffered === '') {
      setImmediate(() => {
        const text = buffered;
        buffered = '';
        if (socket.writable) socket.write(text);
      });
    }
    buffered += `${line}\n`;
  };
}
