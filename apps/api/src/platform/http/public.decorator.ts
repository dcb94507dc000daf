import { SetMetadata } from '@nestjs/common';

/** Route metadata for ApiKeyGuard and the OpenAPI document: the route needs no key (an invalid key is still 401). */
export const PUBLIC_ROUTE = 'palestra:public';
/** `signed`: the address has a signature. Such requests do not count as unauthenticated. */
export const Public = (kind: 'open' | 'signed' = 'open') => SetMetadata(PUBLIC_ROUTE, kind);
