import { SetMetadata } from '@nestjs/common';

/** Route metadata read by ApiKeyGuard and by the OpenAPI document: a missing key is fine (a wrong one still is 401). */
export const PUBLIC_ROUTE = 'palestra:public';
export const Public = () => SetMetadata(PUBLIC_ROUTE, true);
