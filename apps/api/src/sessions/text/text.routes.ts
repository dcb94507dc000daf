import type { FastifyInstance } from 'fastify';
import type { DialectPluginOptions } from '../dialect-plugin.ts';

export async function textPlugin(_scope: FastifyInstance, _options: DialectPluginOptions): Promise<void> {}
