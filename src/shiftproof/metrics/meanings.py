"""What each measured number is called, what it is the share or mean of, and which way is good: for headings and tooltips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Unit = Literal["share", "points", "number", "count"]
"""How a value is read: a share of 0 to 1, a difference of two shares, a plain number, or how many there are."""


@dataclass(frozen=True)
class Meaning:
    """One metric, for people."""

    title: str
    explanation: str
    unit: Unit
    good: Literal["high", "low"] | None  # None where neither end is better


MEANINGS: Mapping[str, Meaning] = {
    "top1_accuracy": Meaning("Top-1 accuracy", "Share of images whose first class is right.", "share", "high"),
    "top5_accuracy": Meaning("Top-5 accuracy", "Share of images with a right class among the first five.", "share", "high"),
    "class_accuracy": Meaning("Accuracy by class", "Share of the images of one class that are right.", "share", "high"),
    "group_accuracy": Meaning("Accuracy by group", "Share of the images of one group that are right.", "share", "high"),
    "worst_group_accuracy": Meaning(
        "Worst group",
        "Lowest accuracy of all groups large enough to judge; its interval is widened for having looked at all of them.",
        "share",
        "high",
    ),
    "confusion_rate": Meaning(
        "Taken for another class", "Share of the images of one class that are taken for one other class.", "share", "low"
    ),
    "predicted_share": Meaning(
        "Predicted classes", "Share of all images that are given one class, right or not.", "share", None
    ),
    "mean_confidence": Meaning(
        "Mean confidence", "Probability the model gives its first class, averaged over images.", "share", None
    ),
    "overconfidence": Meaning(
        "Overconfidence",
        "Mean confidence minus accuracy: above zero the model promises more than it keeps, below zero less.",
        "points",
        None,
    ),
    "rms_calibration_error": Meaning(
        "RMS calibration error",
        "Root mean square gap between confidence and accuracy, over bins of images alike in confidence.",
        "share",
        "low",
    ),
    "chance_calibration_error": Meaning(
        "RMS calibration error within chance",
        "What a perfectly calibrated model of the same confidences stays below 95 times in 100; less says nothing.",
        "share",
        None,
    ),
    "expected_calibration_error": Meaning(
        "Expected calibration error",
        "Mean gap between confidence and accuracy, over bins of equal width, weighted by their images.",
        "share",
        "low",
    ),
    "brier_score": Meaning(
        "Brier score",
        "Mean squared distance between probabilities and truth, over all classes: 0 is perfect, 2 certain and wrong.",
        "number",
        "low",
    ),
    "accuracy_difference": Meaning(
        "Difference of accuracy",
        "Accuracy of one model minus that of another on the same images; above zero the first is ahead.",
        "points",
        "high",
    ),
    "accuracy_difference_p": Meaning(
        "P-value of the difference",
        "Chance of a difference at least this large if both models were equally good, corrected for all comparisons made.",
        "number",
        None,
    ),
    "shared_mistakes": Meaning(
        "Shared mistakes", "Share of the images that either model gets wrong which both get wrong.", "share", None
    ),
    "agreement": Meaning(
        "Agreement", "Share of images to which two models give the same class, right or not.", "share", None
    ),
    "clean_error": Meaning(
        "Error on clean images", "Share wrong of the images that the corrupted ones were made from.", "share", "low"
    ),
    "corrupted_error": Meaning(
        "Error under one corruption at one severity", "Share of the images that are wrong in one cell.", "share", "low"
    ),
    "corruption_mean_error": Meaning(
        "Error under one corruption", "Share of images wrong, averaged over severities.", "share", "low"
    ),
    "group_error": Meaning(
        "Error by group of corruptions", "Mean error of the corruptions of one group, over all severities.", "share", "low"
    ),
    "mean_corrupted_error": Meaning(
        "Mean error under corruption",
        "Share of images wrong, averaged over all corruptions and severities and divided by nothing.",
        "share",
        "low",
    ),
    "relative_corrupted_error": Meaning(
        "Error added by corruption", "Mean error under corruption minus the error on clean images.", "points", "low"
    ),
    "corruption_error": Meaning(
        "Corruption error (CE)",
        "Error under one corruption in percent of the baseline's: 100 % is as bad as the baseline.",
        "share",
        "low",
    ),
    "mean_corruption_error": Meaning(
        "Mean corruption error (mCE)",
        "Mean over corruptions of the error in percent of the baseline's: 100 % is as bad as the baseline.",
        "share",
        "low",
    ),
    "relative_corruption_error": Meaning(
        "Relative corruption error",
        "Error that one corruption adds to the clean one, in percent of what it adds to the baseline's.",
        "share",
        "low",
    ),
    "relative_mean_corruption_error": Meaning(
        "Relative mCE",
        "Mean over corruptions of the error they add to the clean one, in percent of what they add to the baseline's.",
        "share",
        "low",
    ),
    "sampling_error": Meaning(
        "Sampling error of the run",
        "Half-width of the 95 % interval for exactly these photos: what running every cell could still change.",
        "share",
        "low",
    ),
    "flip_probability": Meaning(
        "Flip probability",
        "Share of frames whose class differs from the frame before, or under noise from the first frame.",
        "share",
        "low",
    ),
    "mean_flip_probability": Meaning(
        "Mean flip probability", "Flip probability averaged over perturbations and divided by nothing.", "share", "low"
    ),
    "flip_rate": Meaning(
        "Flip rate (FR)", "Flip probability under one perturbation in percent of the baseline's.", "share", "low"
    ),
    "mean_flip_rate": Meaning(
        "Mean flip rate (mFR)",
        "Mean over perturbations of the flip rate: 100 % flips as much as the baseline.",
        "share",
        "low",
    ),
    "top5_distance": Meaning(
        "Top-5 distance (uT5D)",
        "How many places the five best classes move from frame to frame, all together: 0 is stable, 15 the most.",
        "number",
        "low",
    ),
    "mean_top5_distance": Meaning(
        "Mean top-5 distance (umT5D)", "Top-5 distance averaged over perturbations and divided by nothing.", "number", "low"
    ),
    "top5_distance_ratio": Meaning(
        "Top-5 distance beside a baseline (T5D)",
        "Top-5 distance under one perturbation in percent of the baseline's.",
        "share",
        "low",
    ),
    "mean_top5_distance_ratio": Meaning(
        "Mean top-5 distance beside a baseline (mT5D)",
        "Mean over perturbations of the top-5 distance in percent of the baseline's.",
        "share",
        "low",
    ),
    "zipf_distance": Meaning(
        "Zipf distance",
        "How far all classes move from frame to frame, where place i weighs 1 / i: 0 is stable.",
        "number",
        "low",
    ),
    "mean_zipf_distance": Meaning("Mean Zipf distance", "Zipf distance averaged over perturbations.", "number", "low"),
    "anchor_accuracy": Meaning(
        "Accuracy on anchor frames", "Share right of the frames that others were taken around.", "share", "high"
    ),
    "pm_k_accuracy": Meaning(
        "Accuracy on all frames around (pm-k)",
        "Share of anchor frames right on every frame at most k away: one wrong answer among them is too many.",
        "share",
        "high",
    ),
    "pm_k_drop": Meaning(
        "Lost around the anchors",
        "Accuracy on anchor frames minus accuracy on all frames around them, over the same anchors.",
        "points",
        "low",
    ),
    "pm_k_class_accuracy": Meaning(
        "pm-k accuracy by class",
        "Share of the anchor frames of one class right on every frame at most k away; k = 0 is the anchor alone.",
        "share",
        "high",
    ),
    "pm_k_subset_accuracy": Meaning(
        "pm-k accuracy of a subset",
        "Share of some of the anchor frames right on every frame at most k away; k = 0 is the anchor alone.",
        "share",
        "high",
    ),
    "pm_k_review_accuracy": Meaning(
        "pm-k accuracy and review",
        "Share of anchor frames right on every frame at most k away, without the frames that people rejected or with them.",
        "share",
        "high",
    ),
    "pm_k_class_drop": Meaning(
        "Lost around the anchors of a class",
        "Accuracy on the anchor frames of one class minus accuracy on all frames around them, over the same anchors.",
        "points",
        "low",
    ),
    "pm_k_median_class_drop": Meaning(
        "Median class's loss around the anchors",
        "Half of the classes lose more from their anchor frames to all frames around them, and half lose less.",
        "points",
        "low",
    ),
    "pm_k_subset_drop": Meaning(
        "Lost around the anchors of a subset",
        "Accuracy on some of the anchor frames minus accuracy on all frames around them, over the same anchors.",
        "points",
        "low",
    ),
    "pm_k_review_drop": Meaning(
        "Lost around the anchors, and review",
        "Accuracy on anchor frames minus accuracy on all frames around them, without rejected frames or with all of them.",
        "points",
        "low",
    ),
    "hardest_frames_accuracy": Meaning(
        "Accuracy on the hardest frames",
        "Share right of the frames around anchors that most of the compared models get wrong, the same for each of them.",
        "share",
        "high",
    ),
    "hot_point_miss_rate": Meaning(
        "Hottest point off the object",
        "Share of answers for which the place that speaks most for the class lies outside the object's box.",
        "share",
        "low",
    ),
    "hot_region_miss_rate": Meaning(
        "Hot region off the object",
        "Share of answers for which no part of the hottest region, a tenth of what the model sees, is in the object's box.",
        "share",
        "low",
    ),
    "heat_inside_share": Meaning(
        "Heat on the object",
        "Share of all that speaks for the class which lies in the object's box, averaged over images.",
        "share",
        "high",
    ),
    "effective_robustness": Meaning(
        "Effective robustness",
        "Accuracy on all frames around minus that of the line through published models, at the same accuracy on anchors.",
        "points",
        "high",
    ),
    "auroc": Meaning(
        "AUROC",
        "Chance that an outside image looks more foreign to the detector than an inside one: 100 % is perfect, 50 % blind.",
        "share",
        "high",
    ),
    "aupr_out": Meaning(
        "AUPR, outside positive",
        "Mean precision as more and more images are flagged, outside ones to be found; blind is the outside images' share.",
        "share",
        "high",
    ),
    "aupr_in": Meaning(
        "AUPR, inside positive",
        "Mean precision as more and more images are let through, inside ones to be kept; blind is the inside images' share.",
        "share",
        "high",
    ),
    "fpr_at_tpr": Meaning(
        "False alarms at the chosen share found",
        "Share of inside images flagged when the share of outside ones that was chosen is, 95 % where none was.",
        "share",
        "low",
    ),
    "fpr_in_at_tpr": Meaning(
        "Let through at the chosen share kept",
        "Share of outside images let through when the share of inside ones that was chosen is, 95 % where none was.",
        "share",
        "low",
    ),
    "aurc": Meaning(
        "AURC",
        "Mean share wrong of the images answered, from the surest alone to all of them: 0 is perfect.",
        "share",
        "low",
    ),
    "e_aurc": Meaning("E-AURC", "AURC above that of a perfect order of the same answers: 0 is perfect.", "share", "low"),
    "augrc": Meaning(
        "AUGRC",
        "Mean share of all images that are answered and wrong, from the surest alone to all of them.",
        "share",
        "low",
    ),
    "coverage_at_risk": Meaning(
        "Answered at a chosen risk",
        "Largest share of images that can be answered with no more than the chosen share of answers wrong.",
        "share",
        "high",
    ),
    "auroc_difference": Meaning(
        "Difference of AUROC",
        "AUROC of one detector minus that of another on the same images; above zero the first is ahead.",
        "points",
        "high",
    ),
    "auroc_difference_p": Meaning(
        "P-value of the difference of AUROC",
        "Chance of a difference at least this large if both detectors were equally good, corrected for all asked at once.",
        "number",
        None,
    ),
    "inside_accuracy": Meaning(
        "Accuracy inside",
        "Share right of the inside images that have a label, which weighs the parts of an AUROC.",
        "share",
        "high",
    ),
    "auroc_correct_inside": Meaning(
        "AUROC, correct inside against outside",
        "Chance that an outside image looks more foreign than an inside one that is answered right.",
        "share",
        "high",
    ),
    "auroc_wrong_inside": Meaning(
        "AUROC, wrong inside against outside",
        "Chance that an outside image looks more foreign than an inside one that is answered wrong.",
        "share",
        None,
    ),
    "auroc_correct_wrong": Meaning(
        "AUROC, correct against wrong inside",
        "Chance that an inside image that is answered wrong looks more foreign than one that is answered right.",
        "share",
        "high",
    ),
    "correct_discarded": Meaning(
        "Correct answers discarded",
        "Share of correct inside answers that go with the outside images when a chosen share of those is rejected.",
        "share",
        "low",
    ),
    "rank_shift": Meaning(
        "Shift of rank",
        "How many points further up the order of foreignness one detector puts a group of images than another does.",
        "points",
        None,
    ),
    "shift_auroc": Meaning(
        "AUROC, unchanged against shifted",
        "Chance that a shifted or outside image looks more foreign than an unchanged inside one.",
        "share",
        None,
    ),
    "random_network_auroc": Meaning(
        "AUROC with a random network",
        "The same with a network that never learned anything: what differs from 50 % is about pixels and not about classes.",
        "share",
        None,
    ),
    "mean_random_network_auroc": Meaning(
        "AUROC with random networks, on average",
        "Mean over networks that never learned anything: what differs from 50 % is about pixels and not about classes.",
        "share",
        None,
    ),
    "random_network_failure_auroc": Meaning(
        "AUROC of failures with a random network",
        "Chance that a network that never learned anything finds the trained one's failure more foreign than its success.",
        "share",
        None,
    ),
    "mean_random_network_failure_auroc": Meaning(
        "AUROC of failures with random networks, on average",
        "The same averaged over random networks: what differs from 50 % of the trained model's failures is in the pixels.",
        "share",
        None,
    ),
    "distance_slope": Meaning(
        "AUROC gained with distance",
        "Slope of the line through groups of images: AUROC gained when their distance to the inside grows by one.",
        "number",
        None,
    ),
    "distance_intercept": Meaning(
        "AUROC at no distance",
        "Where the line through groups of images begins: AUROC of images as near to the inside as can be.",
        "share",
        None,
    ),
    "distance_intercept_difference": Meaning(
        "AUROC at no distance, shifted less outside",
        "How much higher the line of a shifted set begins than that of an outside set: style noticed beyond distance.",
        "points",
        None,
    ),
    "distance_intercept_gap": Meaning(
        "Gap between intervals at no distance",
        "What lies between the intervals of two lines where they begin; below zero they overlap.",
        "points",
        None,
    ),
    "mean_auroc": Meaning("AUROC, mean of the models", "AUROC averaged over models.", "share", "high"),
    "auroc_spread": Meaning("AUROC, spread of the models", "Standard deviation of the AUROC over models.", "points", None),
    "model_mean": Meaning("Mean of the models", "One of the other main numbers, averaged over models.", "share", None),
    "model_spread": Meaning(
        "Spread of the models", "Standard deviation of one of the other main numbers over models.", "points", None
    ),
    "operating_threshold": Meaning(
        "Threshold", "Anomaly score from which on images are flagged, on the detector's own scale.", "number", None
    ),
    "operating_false_alarms": Meaning(
        "False alarms at the threshold", "Share of the images to let through that are flagged.", "share", "low"
    ),
    "operating_found": Meaning("Found at the threshold", "Share of the images to flag that are flagged.", "share", "high"),
    "operating_cost": Meaning(
        "Cost at the threshold",
        "What one image to come costs on average, by false alarms and misses, at the share of outside images stated.",
        "number",
        "low",
    ),
    "aurra": Meaning(
        "AURRA",
        "Mean accuracy on the images answered, from the surest alone to all of them: 100 % is perfect.",
        "share",
        "high",
    ),
    "negative_log_likelihood": Meaning(
        "Negative log-likelihood", "Mean surprise at the true class, in natural units: 0 is perfect.", "number", "low"
    ),
    "debiased_calibration_error": Meaning(
        "Calibration error, debiased",
        "Root mean square gap between confidence and accuracy, less what chance adds to it.",
        "share",
        "low",
    ),
    "temperature": Meaning(
        "Temperature",
        "What logits should be divided by so that confidence fits; above 1 the model is too sure of itself.",
        "number",
        None,
    ),
    "frechet_distance": Meaning(
        "Fréchet distance",
        "How far apart two image sets lie in a model's features, as two normal distributions: 0 is alike.",
        "number",
        None,
    ),
    "mistake_distance": Meaning(
        "Severity of mistakes",
        "How many steps a wrong answer lies from the truth in the tree of classes, on average.",
        "number",
        "low",
    ),
    "egregious_share": Meaning(
        "Egregious mistakes", "Share of wrong answers that lie far from the truth in the tree of classes.", "share", "low"
    ),
    "answer_kept_share": Meaning(
        "Answer kept", "Share of a photo's variations that are named as the photo itself is.", "share", "high"
    ),
    "imagenet_a_accuracy": Meaning(
        "Accuracy on hard photos", "Share right of photos that were chosen because models fail on them.", "share", "high"
    ),
    "imagenet_a_top5_accuracy": Meaning(
        "Top-5 accuracy on hard photos", "Share of hard photos with a right class among the first five.", "share", "high"
    ),
    "ordinary_top5_accuracy": Meaning(
        "Top-5 accuracy on ordinary photos",
        "Share of ordinary photos of the same classes with a right class among the first five.",
        "share",
        "high",
    ),
    "ordinary_accuracy": Meaning(
        "Accuracy on ordinary photos", "Share right of ordinary photos of the same classes.", "share", "high"
    ),
    "imagenet_a_calibration_error": Meaning(
        "RMS calibration error on hard photos",
        "Root mean square gap between confidence and accuracy on the hard photos, over bins alike in confidence.",
        "share",
        "low",
    ),
    "imagenet_a_aurra": Meaning(
        "AURRA on hard photos",
        "Mean accuracy on the hard photos answered, from the surest alone to all of them.",
        "share",
        "high",
    ),
    "imagenet_o_aupr": Meaning(
        "AUPR on novel photos",
        "Mean precision as more and more photos are flagged, novel ones to be found among ordinary ones.",
        "share",
        "high",
    ),
    "mean_average_precision": Meaning(
        "Mean average precision (mAP)",
        "Precision of the boxes averaged over recall, then over the classes that have something to find.",
        "share",
        "high",
    ),
    "mean_average_recall": Meaning(
        "Average recall", "Share of the objects of a class that any box finds, averaged over classes.", "share", "high"
    ),
    "size_average_precision": Meaning(
        "mAP by size of object",
        "Mean average precision of objects under 32 x 32 pixels (small), up to 96 x 96 (medium) and above (large).",
        "share",
        "high",
    ),
    "localization_precision": Meaning(
        "Localization", "Average precision of boxes on any object, whatever class they name.", "share", "high"
    ),
    "class_average_precision": Meaning(
        "Average precision by class", "Precision of the boxes of one class averaged over recall.", "share", "high"
    ),
    "class_objects": Meaning("Objects of a class", "How many objects of one class there are to find.", "count", None),
    "class_boxes": Meaning("Boxes of a class", "How many boxes of one class were found.", "count", None),
    "objects_to_find": Meaning("Objects to find", "Objects of all classes that count.", "count", None),
    "objects_left_out": Meaning(
        "Crowds and ignored objects", "Objects that count neither when they are found nor when they are not.", "count", None
    ),
    "boxes_found": Meaning("Boxes found", "Boxes the detector gave, sure or not.", "count", None),
    "precision_recall": Meaning(
        "Precision over recall",
        "Share of boxes that are right when so many of the objects are found, at the best score still to be chosen.",
        "share",
        "high",
    ),
    "anchor_average_precision": Meaning(
        "mAP on anchor frames", "Mean average precision on the frames that others were taken around.", "share", "high"
    ),
    "pm_k_average_precision": Meaning(
        "mAP on the worst frames around (pm-k)",
        "Mean average precision over the worst frame at most k away from each anchor frame.",
        "share",
        "high",
    ),
    "pm_k_precision_drop": Meaning(
        "mAP lost around the anchors",
        "Mean average precision on anchor frames minus that on the worst frames around them.",
        "points",
        "low",
    ),
    "pm_k_subset_precision": Meaning(
        "pm-k mAP of a subset",
        "Mean average precision over the worst frames around some of the anchors; k = 0 is the anchor alone.",
        "share",
        "high",
    ),
    "clean_average_precision": Meaning(
        "mAP on clean images", "Mean average precision on the images that the corrupted ones are made from.", "share", "high"
    ),
    "corrupted_average_precision": Meaning(
        "mAP under one corruption at one severity", "Mean average precision in one cell.", "share", "high"
    ),
    "corruption_mean_precision": Meaning(
        "mAP under one corruption", "Mean average precision, averaged over severities.", "share", "high"
    ),
    "mean_performance_under_corruption": Meaning(
        "Performance under corruption (mPC)",
        "Mean average precision, averaged over all corruptions and severities.",
        "share",
        "high",
    ),
    "relative_performance_under_corruption": Meaning(
        "Performance left under corruption (rPC)", "What mPC is of the mAP on clean images.", "share", "high"
    ),
    "object_accuracy": Meaning(
        "Objects named right", "Share of the objects that are named right, shown in one look.", "share", "high"
    ),
    "object_difference": Meaning(
        "Difference between looks",
        "Accuracy on the same objects after something is done to how they are shown, minus accuracy before it.",
        "points",
        None,
    ),
    "object_difference_p": Meaning(
        "Chance of such a difference between looks",
        "How often so uneven a split of the objects right in one look only would come about by chance.",
        "number",
        None,
    ),
    "scale_factor_accuracy": Meaning(
        "Accuracy by scale factor",
        "Share right of the objects whose larger side is some power of two of the image's side, or as little as half of it.",
        "share",
        "high",
    ),
    "scaled_crop_accuracy": Meaning(
        "Accuracy of crops at their scale",
        "Share right of the crops of one scale factor, shown at that factor times one side.",
        "share",
        "high",
    ),
    "scaled_crop_total": Meaning(
        "Accuracy of all crops at their scale",
        "Share right of all crops, each shown at its scale factor times one side; pooled over images.",
        "share",
        "high",
    ),
    "class_object_share": Meaning(
        "Share of the image, by class", "Share of its image that an object of one class fills, on average.", "share", None
    ),
    "object_share_overlap": Meaning(
        "Overlap of object shares",
        "How far two sets agree in how much of their images objects fill: all where both are spread alike.",
        "share",
        None,
    ),
    "input_size_accuracy": Meaning(
        "Accuracy at this size", "Share of images right when the model is given them in one size.", "share", "high"
    ),
    "input_size_difference": Meaning(
        "Against the model's own size",
        "Accuracy at one input size minus that at the model's own, on the same images.",
        "points",
        "high",
    ),
    "input_size_p": Meaning(
        "Chance of such a difference between sizes",
        "How often so uneven a split of the images right at one size only would come about by chance.",
        "number",
        None,
    ),
    "best_input_size": Meaning(
        "Best input size", "Side of the input at which most images are right; of equals the model's own.", "number", None
    ),
    "input_size_scale_accuracy": Meaning(
        "Accuracy by input size and object size",
        "Share right of the images whose largest object has some scale factor, at one input size.",
        "share",
        "high",
    ),
    "left_after_step": Meaning("Left after a step", "How many are left after one step of making a set.", "count", None),
    "kept_share": Meaning("Kept by people", "Share of the items that people decided about and kept.", "share", None),
    "human_accuracy": Meaning(
        "Accuracy of a person", "Share of the tested images that a person named rightly.", "share", "high"
    ),
    "accuracy_beside_people": Meaning(
        "Accuracy on the images of the test",
        "Share of the images shown to people that a model names rightly, among the classes that people chose from.",
        "share",
        "high",
    ),
    "subset_share": Meaning(
        "Easy, middle and hard",
        "Share of the tested images that everybody named rightly, some did, or nobody.",
        "share",
        None,
    ),
    "subset_accuracy": Meaning(
        "Accuracy by difficulty for people",
        "Share of the images that are easy, middling or hard for people which a model names rightly.",
        "share",
        "high",
    ),
    "human_subset_accuracy": Meaning(
        "Accuracy of a person where people differ",
        "Share of the images that some people name rightly and others do not which a person does.",
        "share",
        "high",
    ),
    "right_together": Meaning(
        "Right together", "How many images two people both named rightly, one of them alone, or neither.", "count", None
    ),
    "class_lookups": Meaning(
        "Classes looked up", "How often a person looked at pictures of a class during the test.", "count", None
    ),
    "percent_agreement": Meaning(
        "Agreement of votes", "Share of the pairs of first votes on the same item that are the same.", "share", "high"
    ),
    "fleiss_kappa": Meaning(
        "Fleiss' kappa",
        "Agreement beyond chance where as many people judged every item: 1 is perfect, 0 chance.",
        "number",
        "high",
    ),
    "krippendorff_alpha": Meaning(
        "Krippendorff's alpha",
        "Agreement beyond chance, however many people judged each item: 1 is perfect, 0 chance.",
        "number",
        "high",
    ),
    "rejection_share": Meaning("Reasons against", "Share of the rejected items that went for one reason.", "share", None),
    "failure_mode_share": Meaning(
        "Failure modes", "Share of the items in which more than half of the people saw one failure mode.", "share", None
    ),
    "agreement_with_others": Meaning(
        "Agreement with others",
        "Share of others' first votes on the same items that are as a person's own.",
        "share",
        "high",
    ),
    "known_answers_right": Meaning(
        "Known answers right", "Share of the items of a known answer that a person answered rightly.", "share", "high"
    ),
    "votes_with_verification": Meaning(
        "Votes, everybody on flagged items alone",
        "Votes given or still wanted where one person reads each item and everybody judges what was flagged.",
        "count",
        None,
    ),
    "votes_of_everybody": Meaning(
        "Votes, everybody on every item",
        "Votes that the same items would have cost if everybody who takes part had judged each of them.",
        "count",
        None,
    ),
    "seconds_to_answer": Meaning(
        "Seconds to answer", "Median time from seeing an item to answering it, of one person.", "number", None
    ),
}
"""Every metric a study measures, or a review."""

OF_UNSEEN = (
    "group_error",
    "mean_corrupted_error",
    "relative_corrupted_error",
    "mean_corruption_error",
    "relative_mean_corruption_error",
    "mean_flip_probability",
    "mean_flip_rate",
    "mean_top5_distance",
    "mean_top5_distance_ratio",
    "mean_zipf_distance",
    "mean_performance_under_corruption",
    "relative_performance_under_corruption",
)
"""Means that are also taken without what a model declares to have been trained with."""


def unseen(metric: str) -> str:
    """What a mean is called once what a model was trained with is left out of it."""
    return f"unseen_{metric}"


MEANINGS = {
    **MEANINGS,
    **{
        unseen(name): Meaning(
            f"{MEANINGS[name].title}, unseen alone",
            f"{MEANINGS[name].explanation} What the model declares as an augmentation of its training is left out.",
            MEANINGS[name].unit,
            MEANINGS[name].good,
        )
        for name in OF_UNSEEN
    },
}


def meaning_of(metric: str) -> Meaning:
    """The meaning of a metric; one that is not in the table goes by its name, whose last word tells a share.

    >>> meaning_of("top1_accuracy").title
    'Top-1 accuracy'
    >>> meaning_of("recovery_rate").title, meaning_of("recovery_rate").unit
    ('Recovery rate', 'share')
    """
    if metric in MEANINGS:
        return MEANINGS[metric]
    title = metric.replace("_", " ")
    is_share = title.rpartition(" ")[2] in {"accuracy", "confidence", "error", "rate", "share"}
    return Meaning(title[:1].upper() + title[1:], "", "share" if is_share else "number", None)
