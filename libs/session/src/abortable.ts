export { abortable } from '@palestra/kit';
