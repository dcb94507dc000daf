import { Injectable } from '@nestjs/common';
import type { SessionObserver } from '@palestra/session';

/** Passes events of sessions on this process to all registered observers. */
@Injectable()
export class ObserverList implements SessionObserver {
  readonly #observers: SessionObserver[] = [];

  add(observer: SessionObserver): void {
    this.#observers.push(observer);
  }

  sessionChanged(...args: Parameters<NonNullable<SessionObserver['sessionChanged']>>): void {
    for (const observer of this.#observers) observer.sessionChanged?.(...args);
  }
  callStarted(...args: Parameters<NonNullable<SessionObserver['callStarted']>>): void {
    for (const observer of this.#observers) observer.callStarted?.(...args);
  }
  callEnded(...args: Parameters<NonNullable<SessionObserver['callEnded']>>): void {
    for (const observer of this.#observers) observer.callEnded?.(...args);
  }
  restored(...args: Parameters<NonNullable<SessionObserver['restored']>>): void {
    for (const observer of this.#observers) observer.restored?.(...args);
  }
  admitted(...args: Parameters<NonNullable<SessionObserver['admitted']>>): void {
    for (const observer of this.#observers) observer.admitted?.(...args);
  }
}
