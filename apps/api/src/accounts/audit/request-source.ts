import type { FastifyRequest } from 'fastify';
import type { RequestSource } from './audit-actions.ts';

export const sourceOf = ({ ip, headers }: Pick<FastifyRequest, 'ip' | 'headers'>): RequestSource => ({
  address: ip,
  userAgent: headers['user-agent'] ?? '',
});
