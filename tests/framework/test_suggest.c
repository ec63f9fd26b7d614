/* Words that are near to what somebody wrote. */
#include "testing.h"

#include <sdlf/sdlf.h>

static const char *suggested(const char *word)
{
    static const char *const known[] = {"epochs", "batch",     "learning-rate", "label-smoothing",
                                        "log",    "plan-file", "device-data",   "device",
                                        "top",    "crop",      "nesterov",      "net"};
    sdlf_suggestion s = {.word = word};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) sdlf_suggest(&s, known[i]);
    return s.best;
}

static void near_words_are_suggested(void)
{
    CHECK_TEXT(suggested("epoch"), "epochs");
    CHECK_TEXT(suggested("bacth"), "batch"); /* neighbours exchanged */
    CHECK_TEXT(suggested("learning_rate"), "learning-rate");
    CHECK_TEXT(suggested("learn"), "learning-rate"); /* an abbreviation */
    CHECK_TEXT(suggested("nte"), "net");
    CHECK_TEXT(suggested("quiet"), NULL);
    CHECK_TEXT(suggested("devic"), "device"); /* two abbreviations: the shorter */
    CHECK_TEXT(suggested("cop"), "crop");     /* one letter either way: what begins alike */
    CHECK_TEXT(suggested("nes"), "nesterov");
    CHECK_TEXT(suggested("network"), "net"); /* more than there is */
    CHECK_TEXT(suggested("batch-size"), "batch");
    CHECK_TEXT(suggested("num-epochs"), "epochs");
    CHECK_TEXT(suggested("log-file"), "log");
    CHECK_TEXT(suggested("load"), NULL); /* half of it would have to change */
    CHECK_TEXT(suggested("file"), NULL);
    CHECK_TEXT(suggested("x"), NULL);
    CHECK_TEXT(suggested("a-word-that-is-much-longer-than-any-option-could-ever-be"), NULL);
    CHECK_TEXT(suggested("Batch_Size"), "batch");       /* neither case nor the dash counts */
    CHECK_TEXT(suggested("learners"), "learning-rate"); /* the same root */
}

/* What users of other frameworks write. */
static void layers_are_suggested(void)
{
    static const char *const pairs[][2] = {
        {"Conv2d", "conv2d"},
        {"convolution", "conv2d"},
        {"MaxPool2d", "max_pool2d"},
        {"BatchNorm2d", "batch_norm2d"},
        {"ReLU", "relu"},
        {"rely", "relu"},
        {"fullyconnected", "fully_connected"},
        {"LogSoftmax", "log_softmax"},
        {"soft_max", "softmax"},
        {"zzz", NULL},
        {"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnn",
         NULL}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        sdlf_suggestion near = {.word = pairs[i][0]};
        for (int j = 0; sdlf_layer_class_at(j) != NULL; j++) sdlf_suggest(&near, sdlf_layer_class_at(j)->name);
        CHECK_TEXT(near.best, pairs[i][1]);
    }
}

static void the_text_is_an_end_of_a_message(void)
{
    sdlf_suggestion near = {.word = "rely"};
    CHECK_TEXT(sdlf_suggestion_print(&near).text, "");
    sdlf_suggest(&near, "relu");
    CHECK_TEXT(sdlf_suggestion_print(&near).text, " (did you mean 'relu'?)");
}

int main(void)
{
    RUN(near_words_are_suggested);
    RUN(layers_are_suggested);
    RUN(the_text_is_an_end_of_a_message);
    return test_summary();
}
