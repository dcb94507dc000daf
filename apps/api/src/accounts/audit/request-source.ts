import type { FastifyRequest } from 'fastify';
import type { RequestSource } from './audit-entry.ts';

export const sourceOf = ({ ip, headers }: Pick<FastifyRequest, 'ip' | 'headers'>): RequestSource => ({
  address: ip,
  userAgent: headers['user-agent'] ?? '',
});
