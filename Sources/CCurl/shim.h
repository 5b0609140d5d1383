#pragma once
#include <curl/curl.h>
#include <pthread.h>
#include <sys/prctl.h>

// Glibc declares it with _GNU_SOURCE only, so Swift does not see it; the name after the declaration is
// the function's own.
int oort_name_thread(pthread_t thread, const char *name) __asm__("pthread_setname_np");

// Swift imports no variadic function, so each kind of argument has a wrapper of its own.

static inline int oort_set_dumpable(int value) {
    return prctl(PR_SET_DUMPABLE, (unsigned long)value, 0UL, 0UL, 0UL);
}

static inline int oort_is_dumpable(void) {
    return prctl(PR_GET_DUMPABLE, 0UL, 0UL, 0UL, 0UL);
}

static inline CURLcode oort_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode oort_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode oort_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode oort_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

// A callback is always set together with the pointer that it is called with.

static inline CURLcode oort_set_write(CURL *easy, curl_write_callback callback, void *context) {
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    return curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, callback);
}

static inline CURLcode oort_set_header(CURL *easy, curl_write_callback callback, void *context) {
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    return curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, callback);
}

static inline CURLcode oort_set_read(CURL *easy, curl_read_callback callback, void *context) {
    curl_easy_setopt(easy, CURLOPT_READDATA, context);
    return curl_easy_setopt(easy, CURLOPT_READFUNCTION, callback);
}

static inline CURLcode oort_set_seek(CURL *easy, curl_seek_callback callback, void *context) {
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}

static inline CURLcode oort_set_prereq(CURL *easy, curl_prereq_callback callback, void *context) {
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLMcode oort_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

// A union member that Swift would read through an unsafe pointer of its own.
static inline CURLcode oort_message_result(const CURLMsg *message) {
    return message->data.result;
}

static inline CURLcode oort_set_progress(CURL *easy, curl_xferinfo_callback callback, void *context) {
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, context);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, callback);
    return curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
}

// The socket that is kept for the next transfer; -1 where there is none.
static inline curl_socket_t oort_kept_socket(CURL *easy) {
    curl_socket_t kept = CURL_SOCKET_BAD;
    curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &kept);
    return kept;
}

// As curl_easy_perform, in a multi handle that keeps the connection, where the transfer stays until it is
// taken out. Where libcurl 7.88 waits for a data connection of FTP it watches no socket that says when that
// stands: curl_easy_perform goes on after 200 ms or a second only, so here it is asked again soon, and less
// and less often.
static inline CURLcode oort_perform(CURLM *multi, CURL *easy) {
    if (curl_multi_add_handle(multi, easy) != CURLM_OK) return CURLE_FAILED_INIT;
    int running = 1, wait = 1;
    while (running) {
        int ready = 0;
        if (curl_multi_perform(multi, &running) != CURLM_OK) return CURLE_FAILED_INIT;
        if (!running) break;
        if (curl_multi_poll(multi, NULL, 0, wait, &ready) != CURLM_OK) return CURLE_FAILED_INIT;
        wait = ready ? 1 : wait < 64 ? 2 * wait : 100;
    }
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(multi, &left)))
        if (message->msg == CURLMSG_DONE && message->easy_handle == easy) return message->data.result;
    return CURLE_FAILED_INIT;
}
