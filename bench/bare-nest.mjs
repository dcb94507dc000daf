// The cost of Nest on Fastify alone: one route without work, with the answers that load.mjs expects. Usage: bare-nest.mjs PORT
import { createRequire } from 'node:module';
import path from 'node:path';

const api = createRequire(path.resolve(import.meta.dirname, '../apps/api/package.json'));
api('reflect-metadata');
const { All, Body, Controller, HttpCode, Module } = api('@nestjs/common');
const { NestFactory } = api('@nestjs/core');
const { FastifyAdapter } = api('@nestjs/platform-fastify');

class Bare {
  answer(body) {
    return { first: 'event: task_id', text: body?.input?.text ?? '' };
  }
}
const answer = Object.getOwnPropertyDescriptor(Bare.prototype, 'answer');
All('*')(Bare.prototype, 'answer', answer);
HttpCode(200)(Bare.prototype, 'answer', answer);
Body()(Bare.prototype, 'answer', 0);
Controller()(Bare);

class Application {}
Module({ controllers: [Bare] })(Application);

const application = await NestFactory.create(Application, new FastifyAdapter(), { logger: false, bodyParser: false });
const fastify = application.getHttpAdapter().getInstance();
// The routes of sessions parse bodies themselves; here an empty body must be accepted too.
fastify.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => done(null, text ? JSON.parse(text) : {}));
await application.listen(Number(process.argv[2]), '127.0.0.1');
